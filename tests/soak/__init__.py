"""Hours of trouble in minutes: a whole fleet at work while everything around it fails, and what must be true
afterwards.
"""
