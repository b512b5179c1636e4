"""Pages: what a command found, for a browser. One face for all of them.

Read ``model`` first: a page as data, which commands fill and also print as text. ``scales`` chooses
axes, ``drawn`` turns pictures into shapes, ``html`` writes the file by the one template
``templates/report/page.html.j2``.
"""
