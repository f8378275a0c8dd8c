package catalog

import (
	"fmt"
	"strings"

	"versola/modules/central/catalog/texts"
)

// Ref implements [Entity].
func (s *EdgeSpec) Ref() Ref { return Ref{Kind: KindNameEdge, ID: s.ID} }

// Ref implements [Entity].
func (s *TenantSpec) Ref() Ref { return Ref{Kind: KindNameTenant, ID: s.ID} }

// Ref implements [Entity].
func (s *ScopeSpec) Ref() Ref { return Ref{KindNameScope, s.Tenant, s.ID} }

// Ref implements [Entity].
func (s *ResourceSpec) Ref() Ref { return Ref{KindNameResource, s.Tenant, s.ID} }

// Ref implements [Entity].
func (s *PermissionSpec) Ref() Ref { return Ref{KindNamePermission, s.Tenant, s.ID} }

// Ref implements [Entity].
func (s *RoleSpec) Ref() Ref { return Ref{KindNameRole, s.Tenant, s.ID} }

// Ref implements [Entity].
func (s *ClientSpec) Ref() Ref { return Ref{KindNameClient, s.Tenant, s.ID} }

// Ref implements [Entity].
func (s *PresetSpec) Ref() Ref { return Ref{KindNamePreset, s.Tenant, s.ID} }

// Refers implements [Entity]: an edge needs nothing.
func (s *EdgeSpec) Refers(func(string, Ref)) {}

// Refers implements [Entity].
func (s *TenantSpec) Refers(visit func(string, Ref)) {
	if s.Edge != "" {
		visit("edge", Ref{Kind: KindNameEdge, ID: s.Edge})
	}
	directory := s.Directory
	if directory == "" {
		directory = s.ID
	}
	visit("directory", Ref{Kind: KindNameDirectory, ID: directory})
	if s.Settings.Theme != "" {
		visit("settings.theme", Ref{KindNameTheme, s.ID, s.Settings.Theme})
	}
	for i, l := range s.Settings.Languages {
		if !texts.Product().Has(l) {
			visit(fmt.Sprintf("settings.languages[%d]", i), Ref{KindNameTexts, s.ID, l})
		}
	}
}

// Refers implements [Entity].
func (s *ScopeSpec) Refers(visit func(string, Ref)) { refersTenant(s.Tenant, visit) }

// Refers implements [Entity].
func (s *ResourceSpec) Refers(visit func(string, Ref)) {
	refersTenant(s.Tenant, visit)
	if a := s.Upstream.Authentication; a != nil {
		visit("upstream.authentication.client", Ref{KindNameClient, s.Tenant, a.Client})
	}
}

// Refers implements [Entity]. An endpoint counts as its resource.
func (s *PermissionSpec) Refers(visit func(string, Ref)) {
	refersTenant(s.Tenant, visit)
	for i, endpoint := range s.Endpoints {
		resource, _, _ := strings.Cut(endpoint, ":")
		visit(fmt.Sprintf("endpoints[%d]", i), Ref{KindNameResource, s.Tenant, resource})
	}
}

// Refers implements [Entity].
func (s *RoleSpec) Refers(visit func(string, Ref)) {
	refersTenant(s.Tenant, visit)
	refersEach("permissions", s.Permissions, KindNamePermission, s.Tenant, visit)
	if s.Within != "" {
		visit("within", Ref{Kind: KindNameTenant, ID: s.Within})
	}
}

// Refers implements [Entity].
func (s *ClientSpec) Refers(visit func(string, Ref)) {
	refersTenant(s.Tenant, visit)
	refersEach("scopes", s.Scopes, KindNameScope, s.Tenant, visit)
	refersEach("permissions", s.Permissions, KindNamePermission, s.Tenant, visit)
	refersEach("authorization_details_types", s.AuthorizationDetails, KindNameDetailType, s.Tenant, visit)
	if s.Theme != "" {
		visit("theme", Ref{KindNameTheme, s.Tenant, s.Theme})
	}
}

// Refers implements [Entity].
func (s *PresetSpec) Refers(visit func(string, Ref)) {
	refersTenant(s.Tenant, visit)
	visit("edge", Ref{Kind: KindNameEdge, ID: s.Edge})
	visit("client", Ref{KindNameClient, s.Tenant, s.Client})
}

// Ref implements [Entity].
func (s *ClaimSpec) Ref() Ref { return Ref{KindNameClaim, s.Tenant, s.ID} }

// Refers implements [Entity].
func (s *ClaimSpec) Refers(visit func(string, Ref)) { refersTenant(s.Tenant, visit) }

// Ref implements [Entity].
func (s *AuthorizationDetailType) Ref() Ref { return Ref{KindNameDetailType, s.Tenant, s.ID} }

// Refers implements [Entity].
func (s *AuthorizationDetailType) Refers(visit func(string, Ref)) { refersTenant(s.Tenant, visit) }

// Ref implements [Entity].
func (s *ThemeSpec) Ref() Ref { return Ref{KindNameTheme, s.Tenant, s.ID} }

// Refers implements [Entity].
func (s *ThemeSpec) Refers(visit func(string, Ref)) { refersTenant(s.Tenant, visit) }

// Ref implements [Entity].
func (s *TextsSpec) Ref() Ref { return Ref{KindNameTexts, s.Tenant, s.ID} }

// Refers implements [Entity].
func (s *TextsSpec) Refers(visit func(string, Ref)) { refersTenant(s.Tenant, visit) }

// Ref implements [Entity].
func (s *TemplateSpec) Ref() Ref { return Ref{KindNameTemplate, s.Tenant, s.ID} }

// Refers implements [Entity].
func (s *TemplateSpec) Refers(visit func(string, Ref)) { refersTenant(s.Tenant, visit) }

// Ref implements [Entity].
func (s *WebhookSpec) Ref() Ref { return Ref{KindNameWebhook, s.Tenant, s.ID} }

// Refers implements [Entity].
func (s *WebhookSpec) Refers(visit func(string, Ref)) { refersTenant(s.Tenant, visit) }

// Ref implements [Entity].
func (s *DirectorySpec) Ref() Ref { return Ref{Kind: KindNameDirectory, ID: s.ID} }

// Refers implements [Entity]: a directory needs nothing.
func (s *DirectorySpec) Refers(func(string, Ref)) {}

func refersTenant(tenant string, visit func(string, Ref)) {
	visit("tenant", Ref{Kind: KindNameTenant, ID: tenant})
}

func refersEach(field string, ids []string, kind, tenant string, visit func(string, Ref)) {
	for i, id := range ids {
		visit(fmt.Sprintf("%s[%d]", field, i), Ref{kind, tenant, id})
	}
}
