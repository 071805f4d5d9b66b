package explore

// Standard returns the explorations that the protocol is held to. The full ones
// take minutes, the others seconds.
func Standard(full bool) []Bounds {
	all := []Bounds{
		{Name: "one flow there and back", Entries: 1, Start: OnNIC, Room: 1, Packets: 4, Moves: 3, OnNIC: 3, Lose: 1, RepeatEvery: 2},
		{Name: "a new flow", Entries: 1, Room: 1, Packets: 4, Moves: 2, OnNIC: 2, Lose: 1, RepeatEvery: 2},
		{Name: "a new flow, repeated every 5th packet", Entries: 1, Room: 1, Packets: 3, Moves: 2, OnNIC: 2, Lose: 2},
		{Name: "two flows share a load counter", Entries: 2, Start: OnNIC, Room: 2, Packets: 2, Moves: 2, OnNIC: 2, Lose: 1, RepeatEvery: 2},
		{Name: "a pair", Entries: 2, Pairs: true, Start: OnNIC, Room: 2, Packets: 2, Moves: 2, OnNIC: 2, Lose: 1, RepeatEvery: 2},
		{Name: "a new pair", Entries: 2, Pairs: true, Room: 2, Packets: 2, Moves: 2, OnNIC: 2, Lose: 1, RepeatEvery: 2},
		{Name: "all that goes wrong with messages", Entries: 1, Room: 1, Packets: 2, Moves: 2, OnNIC: 2, Lose: 1, Duplicate: 1, Delay: 1, Repeat: 1, RepeatEvery: 2},
		{Name: "two new flows, room for one, a failing write", Entries: 2, Room: 1, Slots: 2, Packets: 2, Moves: 2, OnNIC: 2, Write: 1, RepeatEvery: 2},
		{Name: "two new flows, a slot for one", Entries: 2, Room: 1, Slots: 1, Packets: 2, Moves: 2, OnNIC: 2, RepeatEvery: 2},
		{Name: "two new flows, room for one, a loss", Entries: 2, Room: 1, Slots: 2, Packets: 1, Moves: 2, OnNIC: 2, Lose: 1, RepeatEvery: 2},
		{Name: "a refused offer comes again", Entries: 1, Start: OnHost, Room: 1, Packets: 2, Moves: 2, OnNIC: 2, Duplicate: 1, Write: 1, RepeatEvery: 2},
		{Name: "an offer refused, made again, its echo lost", Entries: 1, Start: OnHost, Room: 1, Packets: 1, Moves: 1, OnNIC: 2, Lose: 1, Write: 1, Repeat: 1, RepeatEvery: 2},
		{Name: "a lost packet, a failing write", Entries: 1, Start: OnHost, Room: 1, Packets: 3, Moves: 3, OnNIC: 2, Lose: 1, LosePacket: 1, Write: 1, RepeatEvery: 2},
	}
	if !full {
		return all
	}
	return append(all,
		Bounds{Name: "three moves, all that goes wrong", Entries: 1, Start: OnHost, Room: 1, Packets: 2, Moves: 3, OnNIC: 2, Lose: 1, Duplicate: 1, Delay: 1, Write: 1, RepeatEvery: 2},
		Bounds{Name: "two new flows, a loss, an early repetition", Entries: 2, Room: 2, Packets: 2, Moves: 2, OnNIC: 2, Lose: 1, Repeat: 1, RepeatEvery: 2},
		Bounds{Name: "two flows, a loss, a doubled message", Entries: 2, Start: OnNIC, Room: 2, Packets: 2, Moves: 2, OnNIC: 2, Lose: 1, Duplicate: 1, RepeatEvery: 2},
		Bounds{Name: "two flows, a loss, three at a time on the NIC", Entries: 2, Start: OnNIC, Room: 2, Packets: 2, Moves: 2, OnNIC: 3, Lose: 1, RepeatEvery: 2},
		Bounds{Name: "one flow, six packets, two losses", Entries: 1, Start: OnNIC, Room: 1, Packets: 6, Moves: 3, OnNIC: 3, Lose: 2, RepeatEvery: 2},
	)
}

// Broken returns an exploration for each Break, in which its invariant fails.
// NoEpochs, which is the protocol without our repair, has one for each way in
// which a message may go astray; while none does, it holds.
func Broken() []Bounds {
	one := Bounds{Entries: 1, Start: OnNIC, Room: 1, Packets: 2, Moves: 1, OnNIC: 3}
	of := func(b Bounds, name string, br Break) Bounds {
		b.Name, b.Break = name, br
		return b
	}
	two, pair, lossy := one, one, one
	two.Entries, two.Room = 2, 2
	pair.Entries, pair.Room, pair.Pairs = 2, 2, true
	lossy.Lose = 1
	bounce := Bounds{Entries: 1, Room: 1, Packets: 1, OnNIC: 2, Lose: 1}
	lost, doubled, repeated := one, one, one
	lost.Moves, lost.Lose = 2, 1
	doubled.Moves, doubled.Duplicate = 2, 1
	repeated.Start, repeated.Repeat = OnHost, 1
	return []Bounds{
		of(one, "", NoFreeze), of(one, "", NoFirstEcho), of(one, "", NoSecondEcho), of(one, "", EchoOvertakes),
		of(two, "", CounterMoves), of(pair, "", HalfPair), of(lossy, "", ForgetsData), of(bounce, "", NoRepeat),
		of(lost, "an echo is lost", NoEpochs), of(doubled, "a message is doubled", NoEpochs), of(repeated, "a command is repeated early", NoEpochs),
	}
}
