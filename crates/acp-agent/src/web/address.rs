//! Distinguishes public IP addresses from those of this machine and the networks it belongs to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns `true` if the address is on the public internet. Returns `false` if it is on this machine, in a private or
/// local network, or reserved, according to IANA's registries of special-purpose addresses.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    // Each network has the number of bits in its prefix.
    const SPECIAL_NETWORKS: [([u8; 4], u32); 16] = [
        ([0, 0, 0, 0], 8),
        ([10, 0, 0, 0], 8),
        // Shared address space between a provider and its customers. Many private cloud networks also use it.
        ([100, 64, 0, 0], 10),
        ([127, 0, 0, 0], 8),
        // Link-local addresses. Cloud machines have their metadata at 169.254.169.254.
        ([169, 254, 0, 0], 16),
        ([172, 16, 0, 0], 12),
        ([192, 0, 0, 0], 24),
        ([192, 0, 2, 0], 24),
        // Addresses of the former 6to4 relays.
        ([192, 88, 99, 0], 24),
        ([192, 168, 0, 0], 16),
        ([198, 18, 0, 0], 15),
        ([198, 51, 100, 0], 24),
        ([203, 0, 113, 0], 24),
        // Multicast, reserved and broadcast addresses.
        ([224, 0, 0, 0], 4),
        ([240, 0, 0, 0], 4),
        // The address of the machine metadata in Azure, although it looks public.
        ([168, 63, 129, 16], 32),
    ];
    let bits = address.to_bits();
    let within = |(network, count): &([u8; 4], u32)| {
        let shift = 32 - count;
        bits >> shift == u32::from_be_bytes(*network) >> shift
    };
    !SPECIAL_NETWORKS.iter().any(within)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    // This is an IPv4-mapped address.
    if let Some(inner) = address.to_ipv4_mapped() {
        return is_public_v4(inner);
    }
    let [a, b, c, d, e, f, g, h] = address.segments();
    let tail = |high: u16, low: u16| {
        let [one, two] = high.to_be_bytes();
        let [three, four] = low.to_be_bytes();
        is_public_v4(Ipv4Addr::new(one, two, three, four))
    };
    match (a, b) {
        // A gateway translates this address to IPv4.
        (0x64, 0xff9b) if [c, d, e, f] == [0; 4] => tail(g, h),
        // 6to4: the tunnel ends at an IPv4 address.
        (0x2002, _) => tail(b, c),
        // Addresses for protocols, tunnels, identifiers and documentation.
        (0x2001, 0..0x200) | (0x2001, 0xdb8) | (0x3fff, 0..0x1000) => false,
        // All public addresses assigned so far are in this range.
        (0x2000..=0x3fff, _) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_public_addresses_are_recognized_in_every_notation() {
        for special in [
            "127.0.0.1",
            "127.255.0.3",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.127.255.255",
            "192.0.0.8",
            "198.19.0.1",
            "203.0.113.9",
            "224.0.0.1",
            "255.255.255.255",
            "168.63.129.16",
            "::",
            "::1",
            "fe80::1",
            "fec0::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:c0a8:101::",
            "2001::1",
            "2001:db8::1",
            "100::1",
            "3fff::1",
        ] {
            assert!(!is_public(special.parse().unwrap()), "{special}");
        }
        for public in [
            "1.1.1.1",
            "8.8.8.8",
            "172.15.255.255",
            "172.32.0.1",
            "100.63.0.1",
            "100.128.0.1",
            "192.0.1.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450::1",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2002:101:101::",
            "2001:4860:4860::8888",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }
}
