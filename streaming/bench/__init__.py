"""What the monitor and its parts cost, measured on real input beside something comparable."""
