// Renders a chart as helm does: Go's templates with sprig, and helm's own functions. `go run` needs the packages
// golang-go and golang-github-masterminds-sprig-dev of Debian.
//
//	render <chart directory> <release name> <values.json, all of them>
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v3"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	chart, release := os.Args[1], os.Args[2]
	var values, about map[string]interface{}
	text, err := os.ReadFile(os.Args[3])
	check(err)
	check(json.Unmarshal(text, &values))
	text, err = os.ReadFile(filepath.Join(chart, "Chart.yaml"))
	check(err)
	check(yaml.Unmarshal(text, &about))
	root := template.New("chart").Option("missingkey=error")
	functions := sprig.TxtFuncMap()
	functions["toYaml"] = func(value interface{}) (string, error) {
		out, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(out), "\n"), err
	}
	functions["include"] = func(name string, data interface{}) (string, error) {
		var out bytes.Buffer
		err := root.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	root.Funcs(functions)
	files, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	check(err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		check(err)
		_, err = root.New(filepath.Base(file)).Parse(string(text))
		check(err)
	}
	data := map[string]interface{}{
		"Values":  values,
		"Release": map[string]interface{}{"Name": release, "Service": "Helm"},
		"Chart":   map[string]interface{}{"AppVersion": about["appVersion"], "Name": about["name"]},
	}
	for _, file := range files {
		if strings.HasPrefix(filepath.Base(file), "_") {
			continue
		}
		fmt.Println("---")
		check(root.ExecuteTemplate(os.Stdout, filepath.Base(file), data))
	}
}
