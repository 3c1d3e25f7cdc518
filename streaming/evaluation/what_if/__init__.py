"""The what-if of a group in the driver: its inputs, and the advice that follows from the measured produce rates.

This package may import `evaluation.causes`, `evaluation.lag` and all of `assignors`. Only `page` and `run` use this
package.
"""
