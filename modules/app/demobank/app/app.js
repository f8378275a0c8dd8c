"use strict";
// The demo bank's page. It holds no tokens: the browser sends the edge's
// cookie, and the edge answers 401 when there is no session behind it.

const api = "/resources/bank";
const $ = (id) => document.getElementById(id);
const views = ["loading", "welcome", "broken", "bank"];

const money = (text, currency) =>
  new Intl.NumberFormat(undefined, { style: "currency", currency }).format(Number(text));
const day = (text) =>
  new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" }).format(new Date(text));

let accounts = [];
let chosen = "";
let showAll = false;
const few = 8; // transactions that are shown at first

function show(view) {
  for (const v of views) $(v).hidden = v !== view;
  $("leave").hidden = view !== "bank";
}

function element(tag, className, text) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (text !== undefined) e.textContent = text;
  return e;
}

class Answer extends Error {
  constructor(status, problem) {
    super(`status ${status}`);
    this.status = status;
    this.problem = problem || {};
  }
}

async function call(path, options = {}) {
  const response = await fetch(api + path, {
    credentials: "same-origin",
    cache: "no-store",
    ...options,
    headers: { Accept: "application/json", ...options.headers },
  });
  let body = null;
  if ((response.headers.get("Content-Type") || "").includes("json")) body = await response.json().catch(() => null);
  if (!response.ok) throw new Answer(response.status, body);
  return body;
}

async function load() {
  show("loading");
  try {
    const [profile, list, cards] = await Promise.all([call("/profile"), call("/accounts"), call("/cards")]);
    accounts = list.accounts;
    if (!accounts.some((a) => a.id === chosen)) chosen = accounts[0].id;
    drawProfile(profile);
    drawAccounts();
    drawCards(cards.cards);
    await loadTransactions();
    show("bank");
  } catch (e) {
    fallBack(e);
  }
}

function fallBack(e) {
  if (e instanceof Answer && e.status === 401) return show("welcome");
  if (e instanceof Answer && e.status === 403) notice("You are signed in, but may not see this bank.");
  show("broken");
}

async function loadTransactions() {
  const { transactions } = await call(`/accounts/${encodeURIComponent(chosen)}/transactions`);
  $("more").hidden = showAll || transactions.length <= few;
  $("transactions").replaceChildren(...transactions.slice(0, showAll ? undefined : few).map((t) => {
    const li = element("li");
    li.append(
      element("span", "what", t.description),
      element("span", t.amount.startsWith("-") ? "money" : "money in", (t.amount.startsWith("-") ? "" : "+") + money(t.amount, t.currency)),
      element("span", "when", `${day(t.at)} · ${t.category}`),
    );
    return li;
  }));
  const account = accounts.find((a) => a.id === chosen);
  $("history-title").textContent = `Transactions · ${account.name}`;
}

function drawProfile(p) {
  $("customer").textContent = `Customer ${p.customer_number} · ${p.branch} branch · since ${p.customer_since}`;
}

function drawAccounts() {
  const total = accounts.reduce((sum, a) => sum + Math.round(Number(a.balance) * 100), 0) / 100;
  $("total").textContent = money(total, accounts[0].currency);
  $("accounts").replaceChildren(...accounts.map((a) => {
    const b = element("button", "account");
    b.type = "button";
    b.setAttribute("aria-pressed", String(a.id === chosen));
    b.append(element("strong", "", a.name), element("span", "money", money(a.balance, a.currency)), element("span", "number", a.number));
    b.addEventListener("click", () => {
      chosen = a.id;
      showAll = false;
      for (const other of $("accounts").children) other.setAttribute("aria-pressed", String(other === b));
      loadTransactions().catch(fallBack);
    });
    return b;
  }));
  const select = $("from");
  const before = select.value || chosen;
  select.replaceChildren(...accounts.map((a) => {
    const o = element("option", "", `${a.name} (${money(a.balance, a.currency)})`);
    o.value = a.id;
    return o;
  }));
  select.value = before;
}

function drawCards(cards) {
  $("cards").replaceChildren(...cards.map((c) => {
    const li = element("li", c.status);
    li.append(element("strong", "", c.name), element("span", "", c.status === "active" ? "" : c.status), element("span", "number", c.number), element("span", "", c.expires));
    return li;
  }));
}

function notice(text) {
  $("notice").textContent = text;
  $("notice").hidden = false;
}

function result(text, good) {
  const r = $(good ? "payment-ok" : "payment-refused");
  r.textContent = text;
  r.hidden = false;
}

function wrong(errors) {
  const form = $("payment");
  for (const name of ["from", "to", "amount", "note"]) {
    const found = errors.find((e) => e.field === name);
    const line = $(`wrong-${name}`);
    line.hidden = !found;
    line.textContent = found ? found.detail : "";
    form.elements[name].setAttribute("aria-invalid", String(Boolean(found)));
    if (found) form.elements[name].setAttribute("aria-describedby", line.id);
    else form.elements[name].removeAttribute("aria-describedby");
  }
  if (errors.length > 0 && form.elements[errors[0].field]) form.elements[errors[0].field].focus();
}

async function pay(event) {
  event.preventDefault();
  const form = $("payment");
  const button = $("pay");
  const order = Object.fromEntries(new FormData(form));
  order.amount = order.amount.replace(/\s/g, "").replace(",", ".");
  $("payment-ok").hidden = $("payment-refused").hidden = true;
  wrong([]);
  button.disabled = true;
  try {
    const done = await call("/payments", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(order),
    });
    result(`Paid ${money(order.amount, done.transaction.currency)} to ${done.transaction.description}.`, true);
    form.elements.to.value = form.elements.amount.value = form.elements.note.value = "";
    chosen = order.from;
    accounts = (await call("/accounts")).accounts;
    drawAccounts();
    await loadTransactions();
  } catch (e) {
    failed(e);
  } finally {
    button.disabled = false;
  }
}

function failed(e) {
  const status = e instanceof Answer ? e.status : 0;
  if (status === 401) {
    notice("Your session has ended. Sign in again; nothing was paid.");
    return show("welcome");
  }
  if (status === 403) return result("You may look at these accounts, but not pay from them. Nothing was paid.", false);
  if (status === 422 && e.problem.errors) return wrong(e.problem.errors);
  if (status >= 400 && status < 500) return result(e.problem.detail || "The bank did not accept this payment.", false);
  result("The bank did not answer. Look at your transactions before you pay again.", false);
}

// A sign-in that failed comes back with ?error=, a sign-out with ?state=: say
// what there is to say, and tidy the address.
const params = new URLSearchParams(location.search);
if (params.has("error")) notice(params.get("error") === "access_denied" ? "The sign-in was cancelled." : "The sign-in did not work. Please try again.");
if (location.search) history.replaceState(null, "", location.pathname);

$("payment").addEventListener("submit", pay);
$("more").addEventListener("click", () => {
  showAll = true;
  loadTransactions().catch(fallBack);
});
$("retry").addEventListener("click", load);
// Coming back with the Back button after a sign-out must not show old data.
window.addEventListener("pageshow", (e) => { if (e.persisted) load(); });
load();
