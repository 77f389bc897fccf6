//! The address of a client, and a pool of slots that no address can take alone.
//!
//! A request from a reverse proxy on this machine counts for the address in `X-Forwarded-For`. The
//! addresses of one IPv6 network count as one.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::{Extensions, HeaderMap, HeaderName, Request};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// Bits of an IPv6 address that identify a network.
const NETWORK: u128 = u128::MAX << 64;

/// The peer of a connection, as an extension of its requests.
#[derive(Clone, Copy)]
pub(super) struct Peer(pub(super) IpAddr);

/// The address that limits apply to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Address(IpAddr);

impl Address {
    pub(super) fn from_request<B>(request: &Request<B>) -> Self {
        Self::find(request.extensions(), request.headers())
    }

    pub(super) fn find(extensions: &Extensions, headers: &HeaderMap) -> Self {
        let unknown = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        let peer = extensions.get::<Peer>().map_or(unknown, |peer| peer.0);
        let forwarded = || {
            let line = headers.get_all(FORWARDED_FOR).iter().next_back()?;
            // The proxy appends the address of its client.
            line.to_str().ok()?.rsplit(',').next()?.trim().parse().ok()
        };
        let address = if peer.is_loopback() {
            forwarded().unwrap_or(peer)
        } else {
            peer
        };
        Self::new(address)
    }

    pub(super) fn new(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => IpAddr::V4(address),
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from(u128::from(address) & NETWORK)),
        })
    }
}

/// A pool of slots of which one address holds at most a quarter.
pub(super) struct AddressPool {
    slots: usize,
    held: Mutex<HashMap<Address, usize>>,
}

/// A slot of a pool, until this is dropped.
pub(super) struct AddressSlot {
    pool: Arc<AddressPool>,
    address: Address,
}

impl AddressPool {
    pub(super) fn new(slots: usize) -> Arc<Self> {
        Arc::new(Self {
            slots,
            held: Mutex::default(),
        })
    }

    pub(super) fn acquire(self: &Arc<Self>, address: Address) -> Option<AddressSlot> {
        let mut held = self.lock();
        let all: usize = held.values().sum();
        let of_address = held.get(&address).copied().unwrap_or(0);
        if all >= self.slots || of_address >= (self.slots / 4).max(1) {
            return None;
        }
        held.insert(address, of_address + 1);
        Some(AddressSlot {
            pool: Arc::clone(self),
            address,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Address, usize>> {
        // A poisoned map is consistent: every use is one operation.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AddressSlot {
    fn drop(&mut self) {
        let mut held = self.pool.lock();
        match held.get_mut(&self.address) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) => drop(held.remove(&self.address)),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(peer: &str, forwarded: Option<&str>) -> Address {
        let mut request = Request::new(());
        let peer = peer.parse().unwrap();
        request.extensions_mut().insert(Peer(peer));
        if let Some(forwarded) = forwarded {
            let value = forwarded.parse().unwrap();
            request.headers_mut().insert(FORWARDED_FOR, value);
        }
        Address::from_request(&request)
    }

    #[test]
    fn only_a_proxy_on_this_machine_can_name_another_address() {
        let named = Some("192.0.2.9, 192.0.2.7");
        assert_eq!(address("127.0.0.1", named), address("192.0.2.7", None));
        assert_eq!(address("192.0.2.1", named), address("192.0.2.1", None));
        assert_eq!(address("127.0.0.1", Some("?")), address("127.0.0.1", None));
    }

    #[test]
    fn one_network_counts_as_one_address() {
        assert_eq!(address("2001:db8::1", None), address("2001:db8::2", None));
        assert_ne!(
            address("2001:db8::1", None),
            address("2001:db8:0:1::1", None)
        );
        assert_eq!(
            address("::ffff:192.0.2.1", None),
            address("192.0.2.1", None)
        );
    }

    #[test]
    fn no_address_takes_all_slots() {
        let pool = AddressPool::new(8);
        let one = address("192.0.2.1", None);
        let slots: Vec<_> = (0..3).map(|_| pool.acquire(one)).collect();
        assert_eq!(slots.iter().flatten().count(), 2);
        assert!(pool.acquire(address("192.0.2.2", None)).is_some());
        drop(slots);
        assert!(pool.acquire(one).is_some());
        assert_eq!(pool.lock().len(), 0);
    }
}
