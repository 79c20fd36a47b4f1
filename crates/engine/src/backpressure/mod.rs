//! How fast writers may go: the gate that the writers of a family pass, and the model by which its
//! rate is computed. Pure of families and clocks: [`crate::write::admission`] measures, decides
//! when to look, and waits.

pub(crate) mod pace;
pub(crate) mod write_controller;
