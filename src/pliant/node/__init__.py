"""Beside the user's program on a compute node: ``pliant run``.

:mod:`~pliant.node.core` decides, purely; :mod:`~pliant.node.wrapper` is the shell around it, and
:mod:`~pliant.node.launch` starts it; :mod:`~pliant.node.door` speaks with pliantd in threads of its
own, and :mod:`~pliant.node.hearing` makes events of what these say.
"""
