// Package syntax reads P4_16 source (language versions up to 1.2.5): the
// preprocessor, the lexer, the syntax tree and the parser. It resolves no
// names beyond what the grammar needs to tell types from values; what a name
// means, types and constants are the concern of whoever reads the tree.
//
// Positions: an expression stands where its first token stands, a statement
// too; a declaration, a parameter and a field stand where their name stands.
package syntax

import (
	"math/big"

	"nicprof/p4/source"
)

// File is a program after its preprocessor: every declaration of the file
// itself and of everything that it includes, in order.
type File struct {
	Name     string
	Decls    []Decl
	Sources  *Sources          // text and origin of every position, for messages
	Warnings []*source.Message // from #warning and the like
}

// Node is anything in the tree with a place.
type Node interface {
	Position() source.Pos
}

// At is the place of a node.
type At struct{ Pos source.Pos }

// Position gives the place of the node.
func (a At) Position() source.Pos { return a.Pos }

// Annotation is @Name, @Name(tokens) or @Name[expressions]. The line
// @pragma Name tokens is one too; #pragma means nothing and is left out.
type Annotation struct {
	At
	Name   string
	Form   AnnotationForm
	Tokens []Token     // Unstructured: what stands between the parentheses; Pragma: behind Name
	Exprs  []Expr      // ExprList
	Pairs  []*Argument // KeyValues: key = value
}

// AnnotationForm is how an annotation's body is written.
type AnnotationForm int

// Forms of annotations.
const (
	Bare         AnnotationForm = iota // @name
	Unstructured                       // @name(anything balanced)
	ExprList                           // @name[1, "a", x+1]
	KeyValues                          // @name[a=1, b="x"]
	Pragma                             // @pragma name anything up to the end of the line
)

// Text gives the string of an annotation such as @name("a.b"): its only
// element is a string literal.
func (a *Annotation) Text() (string, bool) {
	switch {
	case (a.Form == Unstructured || a.Form == Pragma) && len(a.Tokens) == 1 && a.Tokens[0].Kind == String:
		return a.Tokens[0].Text, true
	case a.Form == ExprList && len(a.Exprs) == 1:
		if s, ok := a.Exprs[0].(*StringLit); ok {
			return s.Value, true
		}
	}
	return "", false
}

// Annotations is what stands before (for keys and entries: behind) a node.
type Annotations []*Annotation

// Find gives the first annotation of that name, or nil.
func (as Annotations) Find(name string) *Annotation {
	for _, a := range as {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// Declarations.

// Decl is a declaration.
type Decl interface {
	Node
	declNode()
}

// ConstDecl is const Type Name = Value.
type ConstDecl struct {
	At
	Annotations Annotations
	Type        Type
	Name        string
	Value       Expr
}

// VarDecl is Type Name [= Init].
type VarDecl struct {
	At
	Annotations Annotations
	Type        Type
	Name        string
	Init        Expr // nil when absent
}

// ErrorDecl is error { … }; a program may have several.
type ErrorDecl struct {
	At
	Members []*Ident
}

// MatchKindDecl is match_kind { … }; a program may have several.
type MatchKindDecl struct {
	At
	Members []*Ident
}

// EnumDecl is an enum; with an underlying Type it is serialisable and every
// member has a value.
type EnumDecl struct {
	At
	Annotations Annotations
	Name        string
	Type        Type // nil for a plain enum
	Members     []*EnumMember
}

// EnumMember is a member of an enum.
type EnumMember struct {
	At
	Annotations Annotations
	Name        string
	Value       Expr // nil in a plain enum
}

// CompositeKind tells the declarations apart that consist of fields.
type CompositeKind string

// Kinds of composite types, named by their keyword.
const (
	Struct      CompositeKind = "struct"
	Header      CompositeKind = "header"
	HeaderUnion CompositeKind = "header_union"
)

// CompositeDecl is a struct, header or header_union.
type CompositeDecl struct {
	At
	Annotations Annotations
	Kind        CompositeKind
	Name        string
	TypeParams  []*Ident
	Fields      []*Field
}

// Field is a field of a composite type.
type Field struct {
	At
	Annotations Annotations
	Type        Type
	Name        string
}

// TypeDecl is typedef Type Name, or type Type Name (New). When the type is
// declared in place, Decl is that declaration and Type names it.
type TypeDecl struct {
	At
	Annotations Annotations
	New         bool
	Type        Type
	Decl        Decl // *CompositeDecl or *EnumDecl in place, else nil
	Name        string
}

// Direction is a parameter's direction.
type Direction string

// Directions.
const (
	NoDir Direction = ""
	In    Direction = "in"
	Out   Direction = "out"
	InOut Direction = "inout"
)

// Param is a parameter of anything that has parameters.
type Param struct {
	At
	Annotations Annotations
	Dir         Direction
	Type        Type
	Name        string
	Default     Expr // nil when absent
}

// FuncDecl is a function, a method or a constructor. Body is nil for a
// prototype.
type FuncDecl struct {
	At
	Annotations Annotations
	Name        string
	TypeParams  []*Ident
	Params      []*Param
	Return      Type // nil for a constructor
	Extern      bool // extern function
	Abstract    bool // method that an instance must define
	Constructor bool
	Body        *BlockStmt
}

// ExternDecl is an extern type with its methods and constructors. Forward
// marks the bare extern Name;.
type ExternDecl struct {
	At
	Annotations Annotations
	Name        string
	TypeParams  []*Ident
	Methods     []*FuncDecl
	Forward     bool
}

// ActionDecl is an action.
type ActionDecl struct {
	At
	Annotations Annotations
	Name        string
	Params      []*Param
	Body        *BlockStmt
}

// ParserDecl is a parser, or a parser type when TypeOnly.
type ParserDecl struct {
	At
	Annotations Annotations
	Name        string
	TypeParams  []*Ident
	Params      []*Param
	TypeOnly    bool

	CtorParams []*Param
	Locals     []Decl // constants, variables, instances, value sets
	States     []*State
}

// State is a state of a parser. Next and Select are both nil when no
// transition is written, which rejects.
type State struct {
	At
	Annotations Annotations
	Name        string
	Stmts       []Stmt
	Next        *Ident // transition Next;
	Select      *Select
}

// Select is transition select (Exprs) { Cases }.
type Select struct {
	At
	Exprs []Expr
	Cases []*SelectCase
}

// SelectCase is Keys: Next. One key for each selected expression; a single
// default or _ stands for all.
type SelectCase struct {
	At
	Keys []Expr
	Next *Ident
}

// ValueSetDecl is value_set<Type>(Size) Name.
type ValueSetDecl struct {
	At
	Annotations Annotations
	Type        Type
	Size        Expr
	Name        string
}

// ControlDecl is a control, or a control type when TypeOnly.
type ControlDecl struct {
	At
	Annotations Annotations
	Name        string
	TypeParams  []*Ident
	Params      []*Param
	TypeOnly    bool

	CtorParams []*Param
	Locals     []Decl // constants, variables, instances, actions, tables
	Apply      *BlockStmt
}

// PackageDecl is a package type.
type PackageDecl struct {
	At
	Annotations Annotations
	Name        string
	TypeParams  []*Ident
	Params      []*Param
}

// InstanceDecl is Type(Args) Name [= { Init }]. Of an array of instances,
// Type(Args) Name[Size], the type is a StackType.
type InstanceDecl struct {
	At
	Annotations Annotations
	Type        Type
	Args        []*Argument
	Name        string
	HasInit     bool
	Init        []Decl // *FuncDecl and *InstanceDecl
}

// TableDecl is a table. The properties key, actions and entries have their own
// fields; everything else, default_action and size included, is in Props.
type TableDecl struct {
	At
	Annotations Annotations
	Name        string
	HasKey      bool
	Keys        []*KeyElement
	HasActions  bool
	Actions     []*ActionRef
	Entries     *Entries // nil when the table declares none
	Props       []*Property
}

// Prop gives the property of that name, or nil.
func (t *TableDecl) Prop(name string) *Property {
	for _, p := range t.Props {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// KeyElement is Expr: Match of a table's key.
type KeyElement struct {
	At
	Expr        Expr
	Match       *Ident
	Annotations Annotations
}

// ActionRef names an action, with the arguments bound to it if any.
type ActionRef struct {
	At
	Annotations Annotations // in the list of actions
	Action      *Ident
	HasArgs     bool // parentheses are written
	Args        []*Argument
}

// Entries is the property entries.
type Entries struct {
	At
	Annotations Annotations
	Const       bool
	List        []*Entry
}

// Entry is [const] [priority = Priority:] Keys: Action;
type Entry struct {
	At
	Const       bool
	Priority    Expr // nil when absent
	Keys        []Expr
	Action      *ActionRef
	Annotations Annotations
}

// Property is any other property of a table.
type Property struct {
	At
	Annotations Annotations
	Const       bool
	Name        string
	Value       Expr
}

func (*ConstDecl) declNode()     {}
func (*VarDecl) declNode()       {}
func (*ErrorDecl) declNode()     {}
func (*MatchKindDecl) declNode() {}
func (*EnumDecl) declNode()      {}
func (*CompositeDecl) declNode() {}
func (*TypeDecl) declNode()      {}
func (*FuncDecl) declNode()      {}
func (*ExternDecl) declNode()    {}
func (*ActionDecl) declNode()    {}
func (*ParserDecl) declNode()    {}
func (*ValueSetDecl) declNode()  {}
func (*ControlDecl) declNode()   {}
func (*PackageDecl) declNode()   {}
func (*InstanceDecl) declNode()  {}
func (*TableDecl) declNode()     {}

// Types.

// Type is a type as written.
type Type interface {
	Node
	typeNode()
}

// BaseKind is a built-in type without parameters.
type BaseKind string

// Built-in types.
const (
	Bool      BaseKind = "bool"
	ErrorType BaseKind = "error"
	StringT   BaseKind = "string"
	MatchKind BaseKind = "match_kind"
	Void      BaseKind = "void"
)

// BaseType is a built-in type without parameters.
type BaseType struct {
	At
	Kind BaseKind
}

// BitsKind is one of the bit string types.
type BitsKind string

// Kinds of bit strings.
const (
	Bit    BitsKind = "bit"
	Int    BitsKind = "int"
	Varbit BitsKind = "varbit"
)

// BitsType is bit<W>, int<W> or varbit<W>. Width is nil for bit (one bit) and
// for int (an integer of any size).
type BitsType struct {
	At
	Kind  BitsKind
	Width Expr
}

// NamedType is a declared type or a type parameter; Global marks .Name, which
// names the outermost scope.
type NamedType struct {
	At
	Name   string
	Global bool
}

// SpecializedType is Base<Args>.
type SpecializedType struct {
	At
	Base *NamedType
	Args []Type
}

// StackType is Elem[Size]: a header stack, or an array of anything else. It may
// be written behind the declared name too.
type StackType struct {
	At
	Elem Type
	Size Expr
}

// TupleType is tuple<Args>.
type TupleType struct {
	At
	Args []Type
}

// ListType is list<Elem>.
type ListType struct {
	At
	Elem Type
}

// DontCareType is _ as a type argument.
type DontCareType struct{ At }

func (*BaseType) typeNode()        {}
func (*BitsType) typeNode()        {}
func (*NamedType) typeNode()       {}
func (*SpecializedType) typeNode() {}
func (*StackType) typeNode()       {}
func (*TupleType) typeNode()       {}
func (*ListType) typeNode()        {}
func (*DontCareType) typeNode()    {}

// Statements.

// Stmt is a statement, or a declaration among statements.
type Stmt interface {
	Node
	stmtNode()
}

// BlockStmt is [annotations] { Stmts }. End is the closing brace.
type BlockStmt struct {
	At
	Annotations Annotations
	Stmts       []Stmt
	End         source.Pos
}

// DeclStmt is a declaration among statements: *VarDecl, *ConstDecl or
// *InstanceDecl.
type DeclStmt struct {
	At
	Decl Decl
}

// AssignStmt is Left Op Right, where Op is "=" or a compound operator: "+=",
// "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "|+|=", "|-|=".
type AssignStmt struct {
	At
	Annotations Annotations
	Left        Expr
	Op          string
	Right       Expr
}

// CallStmt is a call: of a function, an extern, a method, an action, a table's
// or a control's apply.
type CallStmt struct {
	At
	Annotations Annotations
	Call        *CallExpr
}

// IfStmt is if (Cond) Then [else Else].
type IfStmt struct {
	At
	Annotations Annotations
	Cond        Expr
	Then        Stmt
	Else        Stmt // nil when absent
}

// SwitchStmt is switch (Expr) { Cases }: on action_run or on values.
type SwitchStmt struct {
	At
	Annotations Annotations
	Expr        Expr
	Cases       []*SwitchCase
}

// SwitchCase is Label: Body. The label is a DefaultExpr for default. A nil
// Body falls through to the next case.
type SwitchCase struct {
	At
	Label Expr
	Body  *BlockStmt
}

// ReturnStmt is return [Value].
type ReturnStmt struct {
	At
	Value Expr // nil when absent
}

// ExitStmt is exit.
type ExitStmt struct{ At }

// EmptyStmt is a lone semicolon.
type EmptyStmt struct{ At }

// ForStmt is for (Init; Cond; Post) Body.
type ForStmt struct {
	At
	Annotations Annotations
	Init        []Stmt // *DeclStmt (variables), *AssignStmt, *CallStmt
	Cond        Expr
	Post        []Stmt // *AssignStmt, *CallStmt
	Body        Stmt
}

// ForInStmt is for (Type Var in Over) Body. Over is a range (a BinaryExpr with
// Op ".."), or an expression: a header stack, a list.
type ForInStmt struct {
	At
	Annotations Annotations
	Var         *VarDecl
	Over        Expr
	Body        Stmt
}

// BreakStmt is break.
type BreakStmt struct{ At }

// ContinueStmt is continue.
type ContinueStmt struct{ At }

func (*BlockStmt) stmtNode()    {}
func (*DeclStmt) stmtNode()     {}
func (*AssignStmt) stmtNode()   {}
func (*CallStmt) stmtNode()     {}
func (*IfStmt) stmtNode()       {}
func (*SwitchStmt) stmtNode()   {}
func (*ReturnStmt) stmtNode()   {}
func (*ExitStmt) stmtNode()     {}
func (*EmptyStmt) stmtNode()    {}
func (*ForStmt) stmtNode()      {}
func (*ForInStmt) stmtNode()    {}
func (*BreakStmt) stmtNode()    {}
func (*ContinueStmt) stmtNode() {}

// Expressions.

// Expr is an expression.
type Expr interface {
	Node
	exprNode()
}

// IntLit is an integer literal: 10, 8w0xFF, 4s7. Width is 0 when not written.
type IntLit struct {
	At
	Value  *big.Int
	Width  int
	Signed bool // with a width: s rather than w
	Text   string
}

// BoolLit is true or false.
type BoolLit struct {
	At
	Value bool
}

// StringLit is a string literal. Value has its escapes (\" and \\) undone.
type StringLit struct {
	At
	Value string
}

// Ident is a name: of a value, an action, a table, an instance, and also of a
// type where an expression may name one (E.member, Ctl.apply(), Ctor(args));
// the error type is the Ident error. Global marks .Name.
type Ident struct {
	At
	Name   string
	Global bool
}

// ThisExpr is this.
type ThisExpr struct{ At }

// TypeExpr is a specialised type where an expression stands: C<T>.apply(…).
type TypeExpr struct {
	At
	Type Type
}

// MemberExpr is X.Name.
type MemberExpr struct {
	At
	X       Expr
	Name    string
	NamePos source.Pos
}

// IndexExpr is X[Index].
type IndexExpr struct {
	At
	X     Expr
	Index Expr
}

// SliceExpr is X[Hi:Lo], or X[Lo+:Width] when Width is there; Hi is nil then.
type SliceExpr struct {
	At
	X      Expr
	Hi, Lo Expr
	Width  Expr
}

// UnaryExpr is Op X, Op one of ! ~ - +.
type UnaryExpr struct {
	At
	Op string
	X  Expr
}

// BinaryExpr is X Op Y: * / % + - |+| |-| ++ << >> <= >= < > == != & ^ | && ||,
// and in key sets &&& (value and mask) and .. (range).
type BinaryExpr struct {
	At
	Op    string
	OpPos source.Pos
	X, Y  Expr
}

// MuxExpr is Cond ? Then : Else.
type MuxExpr struct {
	At
	Cond, Then, Else Expr
}

// CastExpr is (Type) X.
type CastExpr struct {
	At
	Type Type
	X    Expr
}

// CallExpr is Fun<TypeArgs>(Args): a call, or a constructor call when Fun
// names a type.
type CallExpr struct {
	At
	Fun      Expr
	TypeArgs []Type
	Args     []*Argument
	Lparen   source.Pos
}

// Argument is an argument, or key = value of a record or an annotation. Name
// is empty for a positional one. Value is a DefaultExpr for _.
type Argument struct {
	At
	Name  string
	Value Expr
}

// ListExpr is { Elems }, Rest marks a final ….
type ListExpr struct {
	At
	Elems []Expr
	Rest  bool
}

// RecordExpr is { name = value, … }, Rest marks a final ….
type RecordExpr struct {
	At
	Fields []*Argument
	Rest   bool
}

// InvalidExpr is {#}, an invalid header or union.
type InvalidExpr struct{ At }

// DefaultExpr is default, _ or ... as written in Text.
type DefaultExpr struct {
	At
	Text string
}

func (*IntLit) exprNode()      {}
func (*BoolLit) exprNode()     {}
func (*StringLit) exprNode()   {}
func (*Ident) exprNode()       {}
func (*ThisExpr) exprNode()    {}
func (*TypeExpr) exprNode()    {}
func (*MemberExpr) exprNode()  {}
func (*IndexExpr) exprNode()   {}
func (*SliceExpr) exprNode()   {}
func (*UnaryExpr) exprNode()   {}
func (*BinaryExpr) exprNode()  {}
func (*MuxExpr) exprNode()     {}
func (*CastExpr) exprNode()    {}
func (*CallExpr) exprNode()    {}
func (*ListExpr) exprNode()    {}
func (*RecordExpr) exprNode()  {}
func (*InvalidExpr) exprNode() {}
func (*DefaultExpr) exprNode() {}
