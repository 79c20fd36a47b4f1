//! The zstd frames of a compressed WAL, in a build without zstd: neither type has a value.

use super::Codec;
use esker_status::Result;
use std::convert::Infallible;

/// Makes a frame of each record.
#[derive(Debug)]
pub struct StreamEncoder(Infallible);

impl StreamEncoder {
    /// `NotSupported`.
    pub fn new() -> Result<StreamEncoder> {
        Err(Codec::Zstd.not_built())
    }

    /// Replaces `out` by the frame of `record`.
    pub fn encode(&mut self, _record: &[u8], _out: &mut Vec<u8>) -> Result<()> {
        match self.0 {}
    }
}

/// Decodes frames that arrive in fragments.
#[derive(Debug)]
pub struct StreamDecoder(Infallible);

impl StreamDecoder {
    /// `NotSupported`.
    pub fn new() -> Result<StreamDecoder> {
        Err(Codec::Zstd.not_built())
    }

    /// Forgets a half-decoded record.
    pub fn reset(&mut self) -> Result<()> {
        match self.0 {}
    }

    /// Appends what `fragment` decodes to; `true` when the frame is complete.
    pub fn decode(&mut self, _fragment: &[u8], _limit: usize, _out: &mut Vec<u8>) -> Result<bool> {
        match self.0 {}
    }
}
