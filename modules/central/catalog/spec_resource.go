package catalog

// ResourceSpec declares an API behind an edge.
type ResourceSpec struct {
	Tenant    string         `json:"tenant" yaml:"tenant"`
	ID        string         `json:"id" yaml:"id"` // the path segment under /resources/
	Name      string         `json:"name,omitempty" yaml:"name"`
	Audience  string         `json:"audience" yaml:"audience"` // default: the resource's id
	Upstream  UpstreamSpec   `json:"upstream" yaml:"upstream"`
	Endpoints []EndpointSpec `json:"endpoints" yaml:"endpoints"`
	URI       string         `json:"uri,omitempty" yaml:"uri"` // the resource indicator (RFC 8707)
	CORS      *CORSSpec      `json:"cors,omitempty" yaml:"cors"`
	Limits    *LimitSpec     `json:"limits,omitempty" yaml:"limits"`
}

// UpstreamSpec says where and how a resource is reached.
type UpstreamSpec struct {
	URL             string   `json:"url" yaml:"url"` // scheme, host, optional base path
	ConnectTimeout  Duration `json:"connect_timeout,omitempty" yaml:"connect_timeout"`
	ResponseTimeout Duration `json:"response_timeout,omitempty" yaml:"response_timeout"` // to the first byte of the answer
	MaxBody         int64    `json:"max_body,omitempty" yaml:"max_body"`                 // bytes; 0: no limit
	ForwardToken    bool     `json:"forward_token,omitempty" yaml:"forward_token"`       // send the caller's access token on
	IdleTimeout     Duration `json:"idle_timeout,omitempty" yaml:"idle_timeout"`         // between two pieces of a body

	TLS            *UpstreamTLS            `json:"tls,omitempty" yaml:"tls"`
	Authentication *UpstreamAuthentication `json:"authentication,omitempty" yaml:"authentication"`
}

// UpstreamTLS says what certificate an upstream has.
type UpstreamTLS struct {
	CA         string `json:"ca,omitempty" yaml:"ca"` // PEM certificates; default: the system's
	ServerName string `json:"server_name,omitempty" yaml:"server_name"`
}

// UpstreamAuthentication says how the edge authenticates itself: with an
// access token of a service client of the resource's tenant.
type UpstreamAuthentication struct {
	Client string   `json:"client" yaml:"client"`
	Scopes []string `json:"scopes,omitempty" yaml:"scopes"`
}

// CORSSpec says which pages may call a resource (Fetch standard, CORS
// protocol).
type CORSSpec struct {
	Origins     []string `json:"origins" yaml:"origins"`
	Headers     []string `json:"headers,omitempty" yaml:"headers"`                     // that a page may send
	Expose      []string `json:"expose_headers,omitempty" yaml:"expose_headers"`       // that it may read
	Credentials bool     `json:"allow_credentials,omitempty" yaml:"allow_credentials"` // cookies are sent
	MaxAge      Duration `json:"max_age,omitempty" yaml:"max_age"`                     // of a preflight's answer
}

// LimitSpec bounds the requests of one caller.
type LimitSpec struct {
	Requests int64    `json:"requests" yaml:"requests"`
	Per      Duration `json:"per" yaml:"per"`
	Burst    int64    `json:"burst,omitempty" yaml:"burst"`
	// Concurrent bounds those under way at once; 0: no bound.
	Concurrent int64 `json:"concurrent,omitempty" yaml:"concurrent"`
}

// Injection sets a request header from a CEL expression of type string.
type Injection struct {
	Header string `json:"header" yaml:"header"`
	Value  string `json:"value" yaml:"value"`
}

// StepUp is what an endpoint asks of the sign-in (RFC 9470).
type StepUp struct {
	ACR    []string `json:"acr_values,omitempty" yaml:"acr_values"`
	MaxAge Duration `json:"max_age,omitempty" yaml:"max_age"`
}

// EndpointSpec declares one method and path of a resource.
type EndpointSpec struct {
	ID     string `json:"id" yaml:"id"`
	Method string `json:"method" yaml:"method"`
	// Path is a template: literal segments, {name} segments, and a last
	// {name...} that takes the rest.
	Path   string `json:"path" yaml:"path"`
	Public bool   `json:"public,omitempty" yaml:"public"` // needs no caller

	// Allow is a CEL expression of type bool over token, user and request that
	// has to be true besides the caller's roles.
	Allow     string      `json:"allow,omitempty" yaml:"allow"`
	Inject    []Injection `json:"inject,omitempty" yaml:"inject"`
	StepUp    *StepUp     `json:"step_up,omitempty" yaml:"step_up"`
	Websocket bool        `json:"websocket,omitempty" yaml:"websocket"`
	Limits    *LimitSpec  `json:"limits,omitempty" yaml:"limits"`
	MaxBody   int64       `json:"max_body,omitempty" yaml:"max_body"` // bytes; 0: the upstream's
	Timeout   Duration    `json:"timeout,omitempty" yaml:"timeout"`   // default: the upstream's
}
