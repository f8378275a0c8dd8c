package openapitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"

	"versola/modules/central/openapi"
)

// Contract checks exchanges against the document.
type Contract struct {
	validator  validator.Validator
	operations []openapi.Operation
	paths      []*regexp.Regexp // of operations

	mu     sync.Mutex
	called map[string]bool
}

var parameter = regexp.MustCompile(`\\\{[a-z]+\\\}`)

// New reads the document.
func New() (*Contract, error) {
	document, err := libopenapi.NewDocument(openapi.Document)
	if err != nil {
		return nil, err
	}
	v, errs := validator.NewValidator(document)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	c := &Contract{validator: v, called: map[string]bool{}}
	if c.operations, err = openapi.Operations(); err != nil {
		return nil, err
	}
	for _, op := range c.operations {
		c.paths = append(c.paths, regexp.MustCompile("^"+parameter.ReplaceAllString(regexp.QuoteMeta(op.Path), "[^/]+")+"$"))
	}
	return c, nil
}

// operation returns that of a request, or nil.
func (c *Contract) operation(r *http.Request) *openapi.Operation {
	for i := range c.operations {
		if c.operations[i].Method == r.Method && c.paths[i].MatchString(r.URL.EscapedPath()) {
			return &c.operations[i]
		}
	}
	return nil
}

// Check holds an exchange to the document. The request's URL is that of the
// API itself, without what an edge puts before it; bodies are given apart.
// Requests of no operation are not its business.
func (c *Contract) Check(t testing.TB, r *http.Request, sent []byte, status int, header http.Header, received []byte) {
	t.Helper()
	op := c.operation(r)
	if op == nil {
		return
	}
	accepted := status < http.StatusMultipleChoices
	if accepted {
		c.mu.Lock()
		c.called[op.ID] = true
		c.mu.Unlock()
	}
	if strings.HasPrefix(header.Get("Content-Type"), "application/x-ndjson") {
		lines(t, op.ID, received)
		return // no document that the validator reads
	}
	again := func() *http.Request {
		same := r.Clone(t.Context())
		same.Body = io.NopCloser(bytes.NewReader(sent))
		return same
	}
	answer := &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(bytes.NewReader(received))}
	if ok, wrong := c.validator.ValidateHttpResponse(again(), answer); !ok {
		for _, e := range wrong {
			t.Errorf("%s: the answer %d is not as described: %s: %s %v\n%.1000s", op.ID, status, e.Message, e.Reason, e.SchemaValidationErrors, received)
		}
	}
	if !accepted || strings.Contains(op.Body, "ndjson") {
		return
	}
	if ok, wrong := c.validator.ValidateHttpRequest(again()); !ok {
		for _, e := range wrong {
			t.Errorf("%s: accepted what is not as described: %s: %s %v\n%.1000s", op.ID, e.Message, e.Reason, e.SchemaValidationErrors, sent)
		}
	}
}

func lines(t testing.TB, id string, received []byte) {
	t.Helper()
	for line := range bytes.Lines(received) {
		if !json.Valid(line) {
			t.Errorf("%s: a line that is no JSON: %.200s", id, line)
		}
	}
}

// NeverCalled returns the operations that no exchange has shown to work.
func (c *Contract) NeverCalled() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, op := range c.operations {
		if !c.called[op.ID] {
			out = append(out, op.ID)
		}
	}
	return out
}
