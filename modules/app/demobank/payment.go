package demobank

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxBody is ten times a payment with every field at its longest.
	maxBody = 16 << 10
	// maxPayment is the demo's limit for one payment, in cents.
	maxPayment = 10_000_000_00
	maxText    = 140 // as long as a note is on a statement
)

// paymentOrder is what a customer asks for.
type paymentOrder struct {
	From     string  `json:"from"` // account id
	To       string  `json:"to"`   // who is paid
	Amount   decimal `json:"amount"`
	Currency string  `json:"currency"` // default: the account's
	Note     string  `json:"note"`
}

// decimal is an amount as it was written, as a number or as a text: it is
// never a float.
type decimal string

// UnmarshalJSON implements json.Unmarshaler.
func (d *decimal) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		return json.Unmarshal(raw, (*string)(d))
	}
	var n json.Number
	if err := json.Unmarshal(raw, &n); err != nil {
		return err
	}
	*d = decimal(n)
	return nil
}

// payment is what came of it.
type payment struct {
	ID      string      `json:"id"`
	Status  string      `json:"status"`
	Booked  transaction `json:"transaction"`
	Balance cents       `json:"balance"`
}

// readBody replaces the body by its content, of bounded size.
func readBody(w http.ResponseWriter, r *http.Request) bool {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		fail(w, problem{Status: http.StatusUnsupportedMediaType, Detail: "send application/json"})
		return false
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		fail(w, problem{Status: http.StatusRequestEntityTooLarge, Detail: fmt.Sprintf("the body is over %d bytes", maxBody)})
	case err != nil:
		fail(w, problem{Status: http.StatusBadRequest, Detail: "the body ended early"})
	default:
		r.Body = io.NopCloser(bytes.NewReader(raw))
		return true
	}
	return false
}

func (b *Bank) pay(w http.ResponseWriter, r *http.Request, c *customer) {
	var order paymentOrder
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&order); err != nil {
		fail(w, problem{Status: http.StatusBadRequest, Detail: "the body is not a payment: from, to, amount, and if you like currency and note"})
		return
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		fail(w, problem{Status: http.StatusBadRequest, Detail: "there is more after the payment"})
		return
	}
	from, amount, wrong := order.check(c)
	if len(wrong) > 0 {
		fail(w, problem{Status: http.StatusUnprocessableEntity, Detail: "the payment cannot be made like this", Errors: wrong})
		return
	}
	c.payments++
	t := transaction{ID: fmt.Sprintf("p-%d", c.payments), At: b.clock.Now(), Description: strings.TrimSpace(order.To),
		Category: "Payment", Amount: -amount, Currency: from.Currency}
	if note := strings.TrimSpace(order.Note); note != "" {
		t.Category = note
	}
	from.Balance -= amount
	from.history = append([]transaction{t}, from.history...)
	from.history = from.history[:min(len(from.history), maxHistory)]
	answer(w, http.StatusCreated, payment{ID: t.ID, Status: "booked", Booked: t, Balance: from.Balance})
}

// check returns the account and the amount, or what is wrong with each field.
func (o *paymentOrder) check(c *customer) (*account, cents, []fieldError) {
	var wrong []fieldError
	from := c.account(o.From)
	if from == nil {
		wrong = append(wrong, fieldError{"from", "Choose one of your accounts"})
	}
	if strings.TrimSpace(o.To) == "" {
		wrong = append(wrong, fieldError{"to", "Say who is paid"})
	} else if !printable(o.To) {
		wrong = append(wrong, fieldError{"to", fmt.Sprintf("Use up to %d letters and signs", maxText)})
	}
	if from != nil && o.Currency != "" && o.Currency != from.Currency {
		wrong = append(wrong, fieldError{"currency", "The account is in " + from.Currency})
	}
	if !printable(o.Note) {
		wrong = append(wrong, fieldError{"note", fmt.Sprintf("Use up to %d letters and signs", maxText)})
	}
	amount, problemText := parseCents(string(o.Amount))
	switch {
	case problemText != "":
		wrong = append(wrong, fieldError{"amount", problemText})
	case from != nil && amount > from.Balance:
		wrong = append(wrong, fieldError{"amount", "There is not enough money in this account"})
	}
	return from, amount, wrong
}

func printable(s string) bool {
	return utf8.ValidString(s) && utf8.RuneCountInString(s) <= maxText && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// parseCents reads "12", "12.5" or "12.50": digits, never a float. wrong is what
// to tell the customer, or empty.
func parseCents(s string) (amount cents, wrong string) {
	whole, fraction, point := strings.Cut(s, ".")
	if whole == "" || point && fraction == "" || len(whole) > 9 || len(fraction) > 2 || strings.Trim(whole+fraction, "0123456789") != "" {
		return 0, "Write an amount such as 1200 or 12.50"
	}
	for _, digit := range whole + (fraction + "00")[:2] {
		amount = amount*10 + cents(digit-'0')
	}
	if amount <= 0 || amount > maxPayment {
		return 0, fmt.Sprintf("Pay more than nothing and up to %s", cents(maxPayment))
	}
	return amount, ""
}
