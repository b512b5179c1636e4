"""What is said of simulations, as pages (:mod:`pliant.pages`): figures, changes, claims.

``plots`` draws a page's pictures as PNG too. It needs matplotlib (the extra ``plots``), imported
where they are drawn.
"""
