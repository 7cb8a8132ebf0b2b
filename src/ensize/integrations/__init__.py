"""Integrations: callbacks that let other people's trainers record predictions.

Each module serves one library, imports it where it is there, and is imported by its
own name: ``from ensize.integrations.lightning import RecordPredictions``.
"""
