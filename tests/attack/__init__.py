"""Attacks from inside the sandbox, through the real hands, each with a look from outside at what must not have
happened.

``python -m tests.attack --minutes N [--seed S] [--user root|nobody] [--only FAMILY] [--round R] [--attempt NAME]``
"""
