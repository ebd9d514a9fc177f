//! What a store says of keeping its word.

/// A setting of the store under which what was acknowledged may be lost, although its own disk has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurabilityWarning {
    /// The setting's name.
    pub setting: &'static str,
    /// What it is.
    pub value: String,
    /// What follows from it, and what helps.
    pub message: String,
}

impl std::fmt::Display for DurabilityWarning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is '{}': {}", self.setting, self.value, self.message)
    }
}
