"""The verbs and their arguments, as `argparse` reads them."""
