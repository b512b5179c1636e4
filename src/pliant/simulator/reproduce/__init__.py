"""The papers' claims, run again: what they say, what comes out here, and whether that agrees.

One module for each paper (:mod:`.papers` lists them): ``reproduce`` in it takes how it was asked
(:mod:`.asked`) and returns a section (:mod:`.claims`). Nothing is tuned to come out: what a paper
leaves open is chosen once, said beside the results, and what does not agree is said too.
"""
