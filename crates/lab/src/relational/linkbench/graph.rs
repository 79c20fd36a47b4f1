//! The graph as a function: which links a node is loaded with, and which are picked.
//!
//! The links of a node follow from its number alone, so that an existing link is found without
//! asking the database. Nodes have few links mostly and many sometimes: 2^k with probability
//! 2^-(k+1), cut at 256, which are 4.5 a node and type on average.

use crate::generate::Rng;
use crate::relational::row::Value;
use crate::workload::zipf::Zipf;

/// Types of links, as the original numbers them.
pub const TYPES: [i64; 2] = [123_456_789, 123_456_790];

/// The key of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The node that it comes from.
    pub id1: i64,
    /// Its type.
    pub kind: i64,
    /// The node that it goes to.
    pub id2: i64,
}

impl Link {
    /// The primary key of its row.
    pub fn values(&self) -> [Value; 3] {
        [
            Value::Int(self.kind),
            Value::Int(self.id1),
            Value::Int(self.id2),
        ]
    }
}

/// Nodes 1 to `nodes`, with hot ones spread among them.
pub struct Graph {
    nodes: u64,
    heat: Zipf,
}

fn mix(a: i64, b: i64, c: u64) -> u64 {
    let seed = (a as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (b as u64) ^ c.rotate_left(32);
    Rng::new(seed).next_u64()
}

impl Graph {
    /// A graph with this number of nodes, picked with a skew of 0.7.
    pub fn new(nodes: u64) -> Graph {
        Graph {
            nodes: nodes.max(2),
            heat: Zipf::new(nodes.max(2), 0.7),
        }
    }

    /// A node, hot ones more often.
    pub fn node(&self, rng: &mut Rng) -> i64 {
        let rank = self.heat.draw(rng);
        // Hot nodes are not neighbours: a multiplication by an odd number, over the nodes.
        let spread = u128::from(rank) * 0x9e37_79b9_7f4a_7c15;
        (spread % u128::from(self.nodes)) as i64 + 1
    }

    /// How many links a node is loaded with.
    pub fn degree(&self, id: i64, kind: i64) -> u64 {
        let bits = mix(id, kind, 0).trailing_ones().min(8);
        1 << bits
    }

    /// Where a link of a node goes, by its number. Numbers give different nodes.
    fn target(&self, id: i64, kind: i64, number: u64) -> i64 {
        let start = mix(id, kind, 1) % self.nodes;
        ((start + number * 7919) % self.nodes) as i64 + 1
    }

    /// The links that a node is loaded with.
    pub fn links(&self, id: i64, kind: i64) -> Vec<Link> {
        let mut links: Vec<Link> = (0..self.degree(id, kind))
            .map(|number| Link {
                id1: id,
                kind,
                id2: self.target(id, kind, number),
            })
            .collect();
        links.sort_by_key(|link| link.id2);
        links.dedup();
        links
    }

    /// A link that was loaded.
    pub fn existing(&self, rng: &mut Rng) -> Link {
        let (id1, kind) = (self.node(rng), TYPES[rng.below(2) as usize]);
        let number = rng.below(self.degree(id1, kind));
        Link {
            id1,
            kind,
            id2: self.target(id1, kind, number),
        }
    }

    /// A link that was hardly loaded.
    pub fn fresh(&self, rng: &mut Rng) -> Link {
        Link {
            id1: self.node(rng),
            kind: TYPES[rng.below(2) as usize],
            id2: rng.below(self.nodes) as i64 + 1,
        }
    }
}
