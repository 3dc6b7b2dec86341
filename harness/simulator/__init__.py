"""A Messages API on loopback whose "model" plays scenarios that react to tool results.

Everything around the model is as on the real service: HTTP, streaming, validation, prompt-cache accounting, rate
limits, errors. The rest of the code sees a base URL only.
"""
