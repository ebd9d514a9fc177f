//! The engine through its doors: what an answer means, and what happens when the disk does not play along.

mod crash;
mod disk;
mod faults;
mod gather;
mod log;
mod migrations;
mod opening;
mod reads;
mod setup;
mod writes;
