//! Attributes of netlink messages, which may nest others.

use std::{collections::BTreeMap, io::Result};

use netlink_packet_core::{NLA_HEADER_SIZE, NlasIterator};

use super::netlink::malformed;

/// `enum rdma_nldev_attr`. They are numbers of an interface: new ones are only added behind.
pub(super) const DEV_INDEX: u16 = 1;
pub(super) const DEV_NAME: u16 = 2;
pub(super) const PORT_INDEX: u16 = 3;
pub(super) const NODE_GUID: u16 = 6;
pub(super) const RES_QP: u16 = 19;
pub(super) const RES_QP_ENTRY: u16 = 20;
pub(super) const RES_LQPN: u16 = 21;
pub(super) const RES_PID: u16 = 28;
pub(super) const RES_KERN_NAME: u16 = 29;
pub(super) const RES_CQ: u16 = 35;
pub(super) const RES_CQ_ENTRY: u16 = 36;
pub(super) const RES_CQE: u16 = 37;
pub(super) const DRIVER: u16 = 52;
pub(super) const DRIVER_STRING: u16 = 54;
pub(super) const DRIVER_U32: u16 = 57;
pub(super) const DRIVER_U64: u16 = 59;
pub(super) const RES_CQN: u16 = 61;
pub(super) const RES_CTXN: u16 = 64;
pub(super) const RES_CTX: u16 = 86;
pub(super) const RES_CTX_ENTRY: u16 = 87;

/// Those of one message, or inside of one that nests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attributes<'a>(pub(super) &'a [u8]);

impl<'a> Attributes<'a> {
    fn each(self) -> impl Iterator<Item = Result<(u16, &'a [u8])>> {
        NlasIterator::new(self.0).map(|attribute| {
            let attribute = attribute.map_err(malformed)?;
            let (kind, end) = (attribute.kind(), usize::from(attribute.length()));
            let value = attribute.into_inner().get(NLA_HEADER_SIZE..end);
            Ok((kind, value.ok_or_else(|| malformed("an attribute is too long"))?))
        })
    }

    /// The values of `wanted`, in order.
    pub(super) fn values(self, wanted: u16) -> Result<Vec<&'a [u8]>> {
        let found =
            self.each().filter(|one| one.as_ref().is_ok_and(|(kind, _)| *kind == wanted) || one.is_err());
        found.map(|one| one.map(|(_, value)| value)).collect()
    }

    /// The entries of a table.
    pub(super) fn entries(self, table: u16, entry: u16) -> Result<Vec<Attributes<'a>>> {
        let mut found = Vec::new();
        for table in self.values(table)? {
            found.extend(Attributes(table).values(entry)?.into_iter().map(Attributes));
        }
        Ok(found)
    }

    fn first(self, wanted: u16) -> Result<Option<&'a [u8]>> {
        Ok(self.values(wanted)?.first().copied())
    }

    pub(super) fn has(self, wanted: u16) -> Result<bool> {
        Ok(self.first(wanted)?.is_some())
    }

    pub(super) fn u32(self, wanted: u16) -> Result<Option<u32>> {
        self.first(wanted)?.map(|value| number(wanted, value).map(u32::from_ne_bytes)).transpose()
    }

    pub(super) fn u64(self, wanted: u16) -> Result<Option<u64>> {
        self.first(wanted)?.map(|value| number(wanted, value).map(u64::from_ne_bytes)).transpose()
    }

    pub(super) fn text(self, wanted: u16) -> Result<Option<&'a str>> {
        self.first(wanted)?.map(text).transpose()
    }

    /// The driver's own numbers by name: a table in which each name stands before its value.
    pub(super) fn of_driver(self) -> Result<BTreeMap<&'a str, u64>> {
        let (mut found, mut name) = (BTreeMap::new(), None);
        for table in self.values(DRIVER)? {
            for attribute in Attributes(table).each() {
                let (kind, value) = attribute?;
                let number = match kind {
                    DRIVER_STRING => {
                        name = Some(text(value)?);
                        continue;
                    }
                    DRIVER_U32 => u32::from_ne_bytes(number(kind, value)?).into(),
                    DRIVER_U64 => u64::from_ne_bytes(number(kind, value)?),
                    _ => continue,
                };
                found.insert(
                    name.take().ok_or_else(|| malformed("a number of the driver without a name"))?,
                    number,
                );
            }
        }
        Ok(found)
    }
}

/// `None` is an error: what the kernel always says.
pub(super) fn needed<T>(value: Option<T>, what: &str) -> Result<T> {
    value.ok_or_else(|| malformed(format!("it has no {what}")))
}

fn number<const N: usize>(kind: u16, value: &[u8]) -> Result<[u8; N]> {
    value.try_into().map_err(|_| malformed(format!("attribute {kind} has {} bytes", value.len())))
}

fn text(value: &[u8]) -> Result<&str> {
    let value = value.strip_suffix(&[0]).ok_or_else(|| malformed("a text without an end"))?;
    std::str::from_utf8(value).map_err(malformed)
}
