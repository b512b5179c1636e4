"""Reports of simulations: the same page as text, as one file of HTML, and as plots.

``page`` is what all of them show. Plots need matplotlib (the extra ``plots``), imported where they
are drawn.
"""
