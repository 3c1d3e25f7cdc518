"""Store between samples what the lag evaluation needs: commits, sampled offsets, and the results of fetches.

This package must not import its parent package.
"""
