package main

import (
	"encoding"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/lima-vm/lima/v2/pkg/limatype"
)

// fieldsFile lists the fields of Lima's YAML for vmctl, which has none of Lima's packages in it.
const fieldsFile = "../../providers/lima/templatefields.txt"

// vmctl refuses a template with a field that Lima does not know: its list is that of this version of Lima.
// UPDATE=1 writes it anew.
func TestFieldsOfTemplates(t *testing.T) {
	var all []string
	fields("", reflect.TypeFor[limatype.LimaYAML](), &all)
	slices.Sort(all)
	text := strings.Join(all, "\n") + "\n"
	if os.Getenv("UPDATE") == "1" {
		if err := os.WriteFile(fieldsFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	known, err := os.ReadFile(fieldsFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(known) != text {
		t.Errorf("%s is not Lima's: run UPDATE=1 go test -run %s .", fieldsFile, t.Name())
	}
}

// shortForms has the types for which Lima also takes a string: unmarshalDisk and its neighbours in its package limayaml.
var shortForms = []reflect.Type{
	reflect.TypeFor[limatype.BaseTemplates](), reflect.TypeFor[limatype.Disk](), reflect.TypeFor[limatype.LocatorWithDigest](),
}

// options has the fields of which LimaYAML says "any", and whose type Lima names elsewhere.
var options = map[string]reflect.Type{
	"vmOpts.qemu": reflect.TypeFor[limatype.QEMUOpts](), "vmOpts.vz": reflect.TypeFor[limatype.VZOpts](),
	"osOpts.Windows": reflect.TypeFor[limatype.WindowsOpts](),
}

// fields adds a line for a field and for each below it: its path, and the shapes of its values. The path of an element
// of a list ends in [], that of any other key in *.
func fields(path string, of reflect.Type, all *[]string) {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	shapes := []string{path}
	if slices.Contains(shortForms, of) {
		shapes = append(shapes, "value")
	}
	add := func(shape string) {
		if path != "" {
			*all = append(*all, strings.Join(append(shapes, shape), " "))
		}
	}
	text := reflect.TypeFor[encoding.TextUnmarshaler]()
	switch {
	case of.Implements(text) || reflect.PointerTo(of).Implements(text):
		add("value")
	case of.Kind() == reflect.Struct:
		add("mapping")
		membersOf(path, of, all)
	case of.Kind() == reflect.Map:
		add("mapping")
		fields(join(path, "*"), of.Elem(), all)
		for name, of := range options {
			if strings.HasPrefix(name, path+".") {
				fields(name, of, all)
			}
		}
	case of.Kind() == reflect.Slice || of.Kind() == reflect.Array:
		add("list")
		fields(path+"[]", of.Elem(), all)
	case of.Kind() == reflect.Interface:
		add("any")
	default:
		add("value")
	}
}

func membersOf(path string, of reflect.Type, all *[]string) {
	for i := range of.NumField() {
		f := of.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case strings.Contains(rest, "inline"):
			membersOf(path, f.Type, all)
		case name != "" && name != "-":
			fields(join(path, name), f.Type, all)
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
