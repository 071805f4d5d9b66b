package traffic

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Taking a key out joins the classes that are then alike, and keeps packets, bytes
// and what was told apart.
func TestTakeOut(t *testing.T) {
	text := "src,dst,proto,sport,dport,pps,bytes\n" +
		"10.0.0.1,10.0.0.9,tcp,1,80,10,100\n" +
		"10.0.0.1,10.0.0.9,tcp,1,8080,20,200\n" +
		"10.0.0.1,10.0.0.9,tcp,1,443,40,300\n" +
		"10.0.0.2,10.0.0.9,tcp,1,80,80,400\n" +
		"10.0.0.2,10.0.0.9,udp,1,80,160,500\n"
	v, err := FlowVolumes(strings.NewReader(text), "t.csv", []Key{{IPv4Source}, {TCPDest}})
	if err != nil {
		t.Fatal(err)
	}
	ports := v.Keys[1]
	kinds := v.TakeOut(1, func(group int) int32 {
		switch {
		case group == NoGroup:
			return 2
		case ports.Label(group)[0] == "443":
			return 1
		}
		return 0 // the two web ports
	})
	if len(v.Keys) != 1 || len(v.Group) != 1 {
		t.Fatalf("%d keys are left, want the source address", len(v.Keys))
	}
	var got []string
	for class, kind := range kinds {
		got = append(got, strings.Join([]string{v.Keys[0].Label(int(v.Group[0][class]))[0],
			[]string{"web", "other", "none"}[kind], fmt.Sprint(v.Packets[class]), fmt.Sprint(v.Bytes[class])}, " "))
	}
	want := []string{"10.0.0.1 web 30 5000", "10.0.0.1 other 40 12000", "10.0.0.2 web 80 32000", "10.0.0.2 none 160 80000"}
	if !slices.Equal(got, want) {
		t.Errorf("classes %q, want %q", got, want)
	}
}
