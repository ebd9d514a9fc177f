//! Fetch and subscribe, on SQLite and on PostgreSQL. The numbers are those of the scenarios a predecessor's tests
//! covered (`a9`), of those nobody had covered (`new`), and of the model's counterexamples (`ce`).

mod escalations;
mod hostile;
mod http;
mod scenarios;
mod signin;
mod stage;
mod uncovered;
