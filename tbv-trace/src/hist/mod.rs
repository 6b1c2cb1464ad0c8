//! stub
pub(crate) mod command;
#[derive(Clone, Copy)]
pub(crate) struct By { pub(crate) process: bool, pub(crate) qp: bool, pub(crate) opcode: bool }
pub(crate) mod csv { use super::By; use tbv_core::Report; use anyhow::Result; pub(crate) fn render(_: &Report, _: By, _: bool) -> Result<Vec<u8>> { Ok(vec![]) } }
pub(crate) mod hdr { use super::By; use tbv_core::Report; use anyhow::Result; pub(crate) fn render(_: &Report, _: By, _: bool) -> Result<Vec<u8>> { Ok(vec![]) } }
pub(crate) mod text { use super::By; use tbv_core::Report; use anyhow::Result; pub(crate) fn render(_: &Report, _: By) -> Result<String> { Ok(String::new()) } }
pub(crate) mod openmetrics { use tbv_core::Report; use anyhow::Result; pub(crate) fn render(_: &Report) -> Result<String> { Ok(String::new()) } }
pub(crate) mod heatmap { use tbv_core::Report; use anyhow::Result; #[derive(Default)] pub(crate) struct Heatmap; impl Heatmap { pub(crate) fn line(&mut self, _: &Report) -> Result<String> { Ok(String::new()) } } }
