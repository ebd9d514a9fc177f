//! What others do: servers started for a benchmark, and the shortest way to speak to each.

pub mod bare;
pub mod nats;
pub mod nginx;
pub mod redis;
