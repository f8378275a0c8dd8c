// Everything here is a convenience: the pages work without it.
(() => {
  "use strict";

  const wrong = document.querySelector("[aria-invalid=true]");
  const first = wrong || document.querySelector("[autofocus]");
  if (first) {
    first.focus();
    if (wrong && wrong.select) wrong.select();
  }

  // A second press while the first is on its way does nothing.
  for (const form of document.forms) {
    form.addEventListener("submit", (event) => {
      if (form.dataset.sent) {
        event.preventDefault();
        return;
      }
      form.dataset.sent = "1";
      const button = form.querySelector(".primary");
      if (button) button.setAttribute("aria-disabled", "true");
    });
  }
  // A page that comes back from the browser's cache works again.
  window.addEventListener("pageshow", () => {
    for (const form of document.forms) {
      delete form.dataset.sent;
      const button = form.querySelector(".primary");
      if (button) button.removeAttribute("aria-disabled");
    }
  });

  const onward = document.querySelector("form[data-send]");
  if (onward) onward.requestSubmit();

  // Applications are told in frames, which the page's own load waits for. One that
  // does not answer holds nobody up for long.
  const away = document.querySelector("a[data-onward]");
  if (away) {
    let gone = false;
    const go = () => {
      if (!gone) location.replace(away.href);
      gone = true;
    };
    window.addEventListener("load", go);
    setTimeout(go, 5000);
  }

  const code = document.getElementById("code");
  if (code) {
    const digits = Number(code.dataset.digits);
    let tried = "";
    code.addEventListener("input", () => {
      const clean = code.value.replace(/\D/g, "").slice(0, digits);
      if (clean !== code.value) code.value = clean;
      if (clean.length === digits && clean !== tried) {
        tried = clean;
        code.form.requestSubmit();
      }
    });
  }

  for (const button of document.querySelectorAll("[data-reveal]")) {
    const field = button.parentElement.querySelector("input");
    button.hidden = false;
    button.setAttribute("aria-controls", field.id);
    button.addEventListener("click", () => {
      const show = field.type === "password";
      field.type = show ? "text" : "password";
      button.textContent = show ? button.dataset.hide : button.dataset.show;
      button.setAttribute("aria-pressed", String(show));
      field.focus();
    });
    // What is kept or offered by the browser stays a password.
    field.form.addEventListener("submit", () => { field.type = "password"; });
  }

  const resend = document.getElementById("resend");
  if (resend && Number(resend.dataset.wait) > 0) {
    const label = resend.textContent;
    const until = Date.now() + Number(resend.dataset.wait) * 1000;
    const tick = () => {
      const left = Math.ceil((until - Date.now()) / 1000);
      resend.disabled = left > 0;
      resend.textContent = left > 0 ? resend.dataset.waiting.replace("{n}", left) : label;
      if (left > 0) setTimeout(tick, 500);
    };
    tick();
  }
})();
