// A browser without scripts: cookies, redirects within the provider, and forms.
const unescape = (s) => s.replace(/&#34;|&quot;/g, '"').replace(/&#39;/g, "'").replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&#43;/g, "+").replace(/&amp;/g, "&");

export class Browser {
  #cookies = new Map();

  constructor(issuer) {
    this.issuer = issuer;
  }

  // go opens an address and follows redirects while they stay at the provider.
  // Where one leaves it, that is the answer to the client.
  async go(address, form) {
    let url = new URL(address);
    let options = form ? { method: "POST", body: form } : {};
    for (;;) {
      const answer = await fetch(url, { ...options, redirect: "manual", headers: { cookie: [...this.#cookies].map(([k, v]) => `${k}=${v}`).join("; ") } });
      for (const line of answer.headers.getSetCookie()) {
        const [name, value] = line.split(";")[0].split(/=(.*)/s);
        this.#cookies.set(name, value);
      }
      const to = answer.headers.get("location");
      if (!to) return { status: answer.status, url, body: await answer.text() };
      url = new URL(to, url);
      options = {};
      if (url.origin !== this.issuer) return { status: answer.status, url, left: true };
    }
  }

  // submit fills the first form of a page that has the fields.
  async submit(page, fields) {
    for (const [, attributes, inner] of page.body.matchAll(/<form([^>]*)>(.*?)<\/form>/gs)) {
      const names = [...inner.matchAll(/<input[^>]*>/g)].map(([tag]) => [tag.match(/name="([^"]*)"/)?.[1], unescape(tag.match(/value="([^"]*)"/)?.[1] ?? "")]);
      if (!Object.keys(fields).every((f) => names.some(([name]) => name === f))) continue;
      const form = new URLSearchParams(names.filter(([name]) => name));
      for (const [name, value] of Object.entries(fields)) form.set(name, value);
      const action = new URL(unescape(attributes.match(/action="([^"]*)"/)[1]), page.url);
      if (action.origin !== this.issuer) return { url: action, form, left: true };
      return this.go(action, form);
    }
    throw new Error(`no form with ${Object.keys(fields)} at ${page.url}: ${page.status}\n${page.body}`);
  }

  // signIn opens an authorization request and signs alice in, if need be.
  async signIn(address) {
    let page = await this.go(address);
    if (!page.left && page.status === 200 && page.body.includes('name="identifier"')) {
      page = await this.submit(page, { identifier: "alice@example.com" });
      page = await this.submit(page, { password: "wonderland-demo-1" });
    }
    return page;
  }
}
