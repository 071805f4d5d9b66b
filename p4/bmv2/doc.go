// Package bmv2 reads the JSON that p4c writes for the behavioral model, and
// reduces it to the intermediate representation of package ir.
//
// Format versions 2.5 to 2.23 are read, of the targets simple_switch (v1model),
// psa_switch and pna_nic. The format is described in the behavioral model's
// docs/JSON_format.md; what that leaves out (field and learn lists, PSA externs,
// source_info) is as p4c writes it.
//
// What the JSON does not keep of the P4 program is restored as far as it tells:
//
//   - Names. The JSON names header instances (ipv4) and flattens user metadata
//     (scalars, userMetadata.x); fields are given here as the P4 program writes
//     them (hdr.ipv4.dstAddr, meta.x). The parameters' names come from the
//     control-plane names of table keys, then from the source fragments of
//     assignments, and are hdr, meta and standard_metadata where neither tells.
//   - Tables that p4c made of statements (tbl_act) are the statements again.
//   - Masks that keep unbounded arithmetic within a field's width become widths
//     and slices.
//
// Accesses to direct counters and meters are not in the JSON, as the model makes
// them at every hit; they are given here at the start of each action but the
// default one, which misses run. Neither are declared index types and counters'
// units, nor whether a size was declared: p4c writes 1024 for one that was not.
package bmv2
