//! The daemon from outside: its local door on both listeners, and a broker that is a script.

mod accept_table;
mod broker;
mod courier;
mod door;
mod home;
mod inbox;
mod lifecycle;
mod link;
