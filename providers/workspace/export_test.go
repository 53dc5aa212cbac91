package workspace

// The programs of a workspace that meet those of others.
const (
	List  = list
	Begin = begin
)
