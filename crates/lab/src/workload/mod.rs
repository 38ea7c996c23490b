//! What is measured: each workload makes its data from a seed, does its operations, and knows what every answer has to be.

pub mod micro;
