package frontend
import ("testing";"nicprof/p4")
func TestZZ(t *testing.T){ p,err:=p4.Load("../apps/natlb.p4",p4.Options{}); if err!=nil {t.Fatal(err)}
 r,err:=Analyse(p,Options{}); if err!=nil {t.Fatal(err)}
 m,err:=r.Mix(map[string]float64{"nat":1}); t.Log(m.Paths,m.Warnings,err)
 for _,b:=range r.Branches { t.Log(b.Pos,b.What,b.Arms,b.Instrs) }
 for _,i:=range []int{10,21} { in:=p.Code[i]; t.Log(in.Args[0].Op, in.Args[0].Bits, in.Args[0].Hi,in.Args[0].Lo, m.Visits[i]); for _,d:=range in.Defs { t.Log(d.Var.Name,d.Var.Kind,d.Var.Bits,d.Hi,d.Lo) } }
 for i,v:=range m.Visits { if v>0 {t.Log(i,v)} }
}
