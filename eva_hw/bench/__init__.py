"""Measurements of the whole accelerator, each written as a report to build/reports."""
