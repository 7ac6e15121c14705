//! Settings, their runs, and tables of both with intervals.
