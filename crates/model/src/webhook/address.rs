//! Which addresses a call may go to when the operator named none.
//!
//! - Only addresses of the public internet: whoever may register a webhook shall not reach the broker's own network.
//! - IPv6 is judged by what is allowed, IPv4 by what is not: the one has a range for the public, the other has not.
//! - Ranges that carry an IPv4 address inside an IPv6 one are refused whole, whatever is inside.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is not of the public internet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotPublic {
    /// "This host", on no network.
    Unspecified,
    /// This machine.
    Loopback,
    /// A private network, or a unique local one.
    Private,
    /// Between a provider and its customers.
    SharedSpace,
    /// This link; clouds answer questions about the machine here.
    LinkLocal,
    /// Many at once.
    Multicast,
    /// An IPv4 address written as an IPv6 one.
    Embedded,
    /// A translator or tunnel to an IPv4 address.
    Translated,
    /// Set aside for protocols, examples, measurements or later.
    Reserved,
}

/// Whether `address` is one of the public internet.
pub fn check(address: IpAddr) -> Result<(), NotPublic> {
    let found = match address {
        IpAddr::V4(address) => NOT_PUBLIC_V4.iter().find(|range| range.holds(address)).map(|range| range.why),
        IpAddr::V6(address) => why_not_v6(address),
    };
    found.map_or(Ok(()), Err)
}

impl NotPublic {
    /// The word for people.
    pub const fn word(self) -> &'static str {
        match self {
            NotPublic::Unspecified => "unspecified",
            NotPublic::Loopback => "loopback",
            NotPublic::Private => "private",
            NotPublic::SharedSpace => "shared",
            NotPublic::LinkLocal => "link-local",
            NotPublic::Multicast => "multicast",
            NotPublic::Embedded => "IPv4-mapped",
            NotPublic::Translated => "translated",
            NotPublic::Reserved => "reserved",
        }
    }
}

impl fmt::Display for NotPublic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

struct RangeV4 {
    base: [u8; 4],
    bits: u32,
    why: NotPublic,
}

struct RangeV6 {
    base: [u16; 8],
    bits: u32,
    why: NotPublic,
}

const fn v4(base: [u8; 4], bits: u32, why: NotPublic) -> RangeV4 {
    RangeV4 { base, bits, why }
}

const fn v6(base: [u16; 8], bits: u32, why: NotPublic) -> RangeV6 {
    RangeV6 { base, bits, why }
}

/// The registries of special-purpose addresses, as far as a call could mean harm or nothing.
const NOT_PUBLIC_V4: &[RangeV4] = &[
    v4([0, 0, 0, 0], 8, NotPublic::Unspecified),
    v4([10, 0, 0, 0], 8, NotPublic::Private),
    v4([100, 64, 0, 0], 10, NotPublic::SharedSpace),
    v4([127, 0, 0, 0], 8, NotPublic::Loopback),
    v4([169, 254, 0, 0], 16, NotPublic::LinkLocal),
    v4([172, 16, 0, 0], 12, NotPublic::Private),
    v4([192, 0, 0, 0], 24, NotPublic::Reserved),
    v4([192, 0, 2, 0], 24, NotPublic::Reserved),
    v4([192, 88, 99, 0], 24, NotPublic::Translated),
    v4([192, 168, 0, 0], 16, NotPublic::Private),
    v4([198, 18, 0, 0], 15, NotPublic::Reserved),
    v4([198, 51, 100, 0], 24, NotPublic::Reserved),
    v4([203, 0, 113, 0], 24, NotPublic::Reserved),
    v4([224, 0, 0, 0], 4, NotPublic::Multicast),
    v4([240, 0, 0, 0], 4, NotPublic::Reserved),
];

/// Everything the public range does not hold, where a word of its own helps; then what it holds and should not be
/// called.
const NOT_PUBLIC_V6: &[RangeV6] = &[
    v6([0; 8], 128, NotPublic::Unspecified),
    v6([0, 0, 0, 0, 0, 0, 0, 1], 128, NotPublic::Loopback),
    v6([0; 8], 96, NotPublic::Embedded),
    v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96, NotPublic::Embedded),
    v6([0, 0, 0, 0, 0xffff, 0, 0, 0], 96, NotPublic::Translated),
    v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96, NotPublic::Translated),
    v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, NotPublic::Translated),
    v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, NotPublic::Private),
    v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, NotPublic::LinkLocal),
    v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, NotPublic::Private),
    v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, NotPublic::Multicast),
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32, NotPublic::Translated),
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, NotPublic::Reserved),
    v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, NotPublic::Reserved),
    v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, NotPublic::Translated),
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, NotPublic::Reserved),
];

/// The one range of IPv6 that is handed out to the public.
const PUBLIC_V6: RangeV6 = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3, NotPublic::Reserved);

fn why_not_v6(address: Ipv6Addr) -> Option<NotPublic> {
    let named = NOT_PUBLIC_V6.iter().find(|range| range.holds(address)).map(|range| range.why);
    named.or_else(|| (!PUBLIC_V6.holds(address)).then_some(NotPublic::Reserved))
}

impl RangeV4 {
    fn holds(&self, address: Ipv4Addr) -> bool {
        let differs = u32::from(address) ^ u32::from_be_bytes(self.base);
        differs >> (u32::BITS - self.bits) == 0
    }
}

impl RangeV6 {
    fn holds(&self, address: Ipv6Addr) -> bool {
        let differs = u128::from(address) ^ u128::from(Ipv6Addr::from(self.base));
        differs >> (u128::BITS - self.bits) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use NotPublic::*;

    #[test]
    fn every_family_that_is_not_public_is_refused_at_its_first_and_last_address() {
        for (address, why) in [
            ("0.0.0.0", Unspecified),
            ("0.255.255.255", Unspecified),
            ("10.0.0.0", Private),
            ("10.255.255.255", Private),
            ("100.64.0.0", SharedSpace),
            ("100.127.255.255", SharedSpace),
            ("127.0.0.1", Loopback),
            ("127.255.255.255", Loopback),
            ("169.254.0.0", LinkLocal),
            ("169.254.169.254", LinkLocal),
            ("169.254.255.255", LinkLocal),
            ("172.16.0.0", Private),
            ("172.31.255.255", Private),
            ("192.0.0.192", Reserved),
            ("192.0.2.1", Reserved),
            ("192.88.99.1", Translated),
            ("192.168.0.0", Private),
            ("192.168.255.255", Private),
            ("198.18.0.0", Reserved),
            ("198.19.255.255", Reserved),
            ("198.51.100.7", Reserved),
            ("203.0.113.7", Reserved),
            ("224.0.0.1", Multicast),
            ("239.255.255.255", Multicast),
            ("240.0.0.1", Reserved),
            ("255.255.255.255", Reserved),
            ("::", Unspecified),
            ("::1", Loopback),
            ("::7f00:1", Embedded),
            ("::8.8.8.8", Embedded),
            ("::ffff:127.0.0.1", Embedded),
            ("::ffff:8.8.8.8", Embedded),
            ("::ffff:0:127.0.0.1", Translated),
            ("64:ff9b::127.0.0.1", Translated),
            ("64:ff9b::169.254.169.254", Translated),
            ("64:ff9b:1::1", Translated),
            ("100::1", Reserved),
            ("2001::1", Translated),
            ("2001:2::1", Reserved),
            ("2001:10::1", Reserved),
            ("2001:1ff:ffff::1", Reserved),
            ("2001:db8::1", Reserved),
            ("2002:7f00:1::", Translated),
            ("2002:808:808::1", Translated),
            ("3fff::1", Reserved),
            ("4000::1", Reserved),
            ("5f00::1", Reserved),
            ("fc00::1", Private),
            ("fd00:ec2::254", Private),
            ("fe80::1", LinkLocal),
            ("febf::1", LinkLocal),
            ("fec0::1", Private),
            ("ff02::1", Multicast),
            ("1fff:ffff::1", Reserved),
        ] {
            assert_eq!(check(address.parse().unwrap()), Err(why), "{address}");
        }
    }

    #[test]
    fn neighbours_of_those_families_are_public() {
        for address in [
            "1.0.0.0",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2000::1",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2003::1",
            "2606:4700::1",
            "3ffe::1",
        ] {
            assert_eq!(check(address.parse().unwrap()), Ok(()), "{address}");
        }
    }
}
