//! Traces: what a client and an agent said to each other, as a file.
