package netif

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"nicprof/internal/fault"
)

// lab is two network namespaces, outer with generator and sink, inner with the
// forwarder, and two cables between them, each a veth pair:
//
//	outer                inner
//	generator ─ in ───── in
//	     sink ─ out ──── out
//
// The namespaces have no name: they and the interfaces are gone with the last
// file descriptor that refers to them, however this process ends.
type lab struct {
	outer, inner namespace
	send, sink   port // outer ends
	in, out      port // inner ends
}

// namespace is a network namespace with a netlink socket into it.
type namespace struct {
	ns      netns.NsHandle
	netlink *netlink.Handle
}

// port is one end of a cable.
type port struct {
	of    *namespace
	name  string
	index int
	mac   net.HardwareAddr
}

// Names of the interfaces; the namespaces hold no other but lo.
const (
	inName  = "in"
	outName = "out"
)

// rights is what making namespaces and raw sockets needs.
const rights = "CAP_NET_ADMIN, CAP_NET_RAW and CAP_SYS_ADMIN (be root)"

// newLab makes the namespaces and cables for packets of up to mtu bytes of
// payload. Without the rights the error is a missing fault.
func newLab(mtu int) (_ *lab, err error) {
	l := &lab{}
	defer func() {
		if err != nil {
			l.close()
			if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
				err = fault.Missingf("network namespaces cannot be made here: %w; it needs %s", err, rights)
			} else if fault.KindOf(err) == 0 {
				err = fault.Missingf("network namespaces with veth pairs: %w", err)
			}
		}
	}()
	for _, n := range []*namespace{&l.outer, &l.inner} {
		n.ns = netns.None()
		if err := aside(func() (err error) {
			n.ns, err = netns.New()
			return err
		}); err != nil {
			return nil, fmt.Errorf("new namespace: %w", err)
		}
		if n.netlink, err = netlink.NewHandleAt(n.ns, unix.NETLINK_ROUTE); err != nil {
			return nil, err
		}
		if err := n.do(quiet); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{inName, outName} {
		veth := netlink.NewVeth(netlink.NewLinkAttrs())
		veth.Name, veth.PeerName = name, name
		veth.MTU, veth.PeerMTU = mtu, uint32(mtu)
		veth.PeerNamespace = netlink.NsFd(l.inner.ns)
		if err := l.outer.netlink.LinkAdd(veth); err != nil {
			return nil, fmt.Errorf("veth pair: %w", err)
		}
	}
	for _, p := range []struct {
		port *port
		of   *namespace
		name string
	}{{&l.send, &l.outer, inName}, {&l.sink, &l.outer, outName}, {&l.in, &l.inner, inName}, {&l.out, &l.inner, outName}} {
		if *p.port, err = p.of.up(p.name); err != nil {
			return nil, fmt.Errorf("interface %s: %w", p.name, err)
		}
	}
	return l, nil
}

// close takes the lab down.
func (l *lab) close() {
	for _, n := range []*namespace{&l.outer, &l.inner} {
		if n.netlink != nil {
			for _, name := range []string{inName, outName} {
				// Gone already when the other end was removed, or never made.
				if link, err := n.netlink.LinkByName(name); err == nil {
					_ = n.netlink.LinkDel(link)
				}
			}
			n.netlink.Close()
		}
		if n.ns.IsOpen() {
			_ = n.ns.Close()
		}
	}
}

// up returns an interface that is up, speaks to nobody by itself, and takes
// what is not addressed to it.
func (n *namespace) up(name string) (port, error) {
	link, err := n.netlink.LinkByName(name)
	if err != nil {
		return port{}, err
	}
	if err := n.netlink.LinkSetARPOff(link); err != nil {
		return port{}, err
	}
	if err := n.netlink.LinkSetUp(link); err != nil {
		return port{}, err
	}
	a := link.Attrs()
	return port{of: n, name: name, index: a.Index, mac: a.HardwareAddr}, nil
}

// counts returns the interface's statistics.
func (p port) counts() (netlink.LinkStatistics, error) {
	link, err := p.of.netlink.LinkByIndex(p.index)
	if err != nil {
		return netlink.LinkStatistics{}, fault.Checkf("statistics of interface %s: %w", p.name, err)
	}
	return *link.Attrs().Statistics, nil
}

// quiet keeps a namespace from sending packets of its own: no IPv6.
func quiet() error {
	err := os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// do runs f on a thread that is in the namespace. Sockets that f opens, and
// processes that it starts, stay there.
func (n *namespace) do(f func() error) error {
	return aside(func() error {
		if err := netns.Set(n.ns); err != nil {
			return err
		}
		return f()
	})
}

// aside runs f, which may change its thread's network namespace, on a thread
// that goes back to the old one, or ends when it cannot.
func aside(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		old, err := netns.Get()
		if err != nil {
			runtime.UnlockOSThread()
			done <- err
			return
		}
		defer old.Close()
		err = f()
		if netns.Set(old) == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}
