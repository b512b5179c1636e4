"""Beside the user's program on a compute node: ``pliant run``.

:mod:`~pliant.node.core` decides, purely; :mod:`~pliant.node.wrapper` is the shell around it;
:mod:`~pliant.node.launch` starts both; :mod:`~pliant.node.door` speaks with pliantd in threads of its
own, and what they say comes by :mod:`~pliant.node.hearing`.
"""
