"""Models learnt jointly from all parties' rows or columns, equal to those learnt from the pooled ones."""
