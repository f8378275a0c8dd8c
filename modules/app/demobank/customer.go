package demobank

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"
)

// currency is that of everything in the demo.
const currency = "KZT"

// account is one account of a customer; balance is in cents.
type account struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Number   string `json:"number"`
	Currency string `json:"currency"`
	Balance  cents  `json:"balance"`
	history  []transaction
}

type transaction struct {
	ID          string    `json:"id"`
	At          time.Time `json:"at"`
	Description string    `json:"description"`
	Category    string    `json:"category"`
	Amount      cents     `json:"amount"` // negative: money that went out
	Currency    string    `json:"currency"`
}

type card struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Number  string `json:"number"` // masked
	Expires string `json:"expires"`
	Status  string `json:"status"`
}

type profile struct {
	Subject  string `json:"subject"`
	Customer string `json:"customer_number"`
	Since    int    `json:"customer_since"`
	Branch   string `json:"branch"`
}

// customer is everything the bank has of one subject.
type customer struct {
	profile  profile
	accounts []*account
	cards    []card
	payments int
	seen     uint64 // the bank's counter at the last call
}

// cents is an amount of money, written as decimal text.
type cents int64

// String returns the amount with two decimals.
func (c cents) String() string {
	sign, v := "", int64(c)
	if v < 0 {
		sign, v = "-", -v
	}
	return fmt.Sprintf("%s%d.%02d", sign, v/100, v%100)
}

// MarshalText implements encoding.TextMarshaler.
func (c cents) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// tengePerEuro turns the merchants' prices into the bank's currency.
const tengePerEuro = 500

// merchants and what one pays there, in euro cents.
var merchants = []struct {
	name, category string
	least, most    int64
}{
	{"Corner Bakery", "Groceries", 240, 1250},
	{"Green Market", "Groceries", 1500, 8900},
	{"City Transport", "Transport", 180, 1200},
	{"Riverside Cinema", "Leisure", 900, 3200},
	{"Northern Energy", "Home", 4200, 11800},
	{"Paper & Ink", "Shopping", 600, 5400},
	{"Harbour Coffee", "Eating out", 280, 1450},
	{"Trattoria Luna", "Eating out", 1800, 7600},
	{"Blue Line Mobile", "Home", 1200, 2900},
}

// dice gives numbers that are always the same for one subject.
type dice struct {
	seed [sha256.Size]byte
	n    uint64
}

func (d *dice) between(least, most int64) int64 {
	d.n++
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(d.seed[:], d.n))
	span := uint64(most - least + 1)                               //nolint:gosec // most is not under least
	return least + int64(binary.BigEndian.Uint64(sum[:8])>>1%span) //nolint:gosec // under span
}

// open makes the customer of a subject, with a few weeks of history before now.
func open(subject string, now time.Time) *customer {
	d := &dice{seed: sha256.Sum256([]byte("demo bank customer " + subject))}
	number := hex.EncodeToString(d.seed[:4])
	c := &customer{profile: profile{
		Subject: subject, Customer: fmt.Sprintf("%08d", d.between(10_000_000, 99_999_999)), Since: int(d.between(2009, 2024)),
		Branch: []string{"Old Harbour", "Station Square", "Hill Street"}[d.between(0, 2)],
	}}
	for i, a := range []struct {
		id, name    string
		least, most int64
	}{{"everyday", "Everyday account", 40_000_000, 180_000_000}, {"savings", "Savings", 250_000_000, 900_000_000}} {
		c.accounts = append(c.accounts, &account{
			ID: a.id, Name: a.name, Currency: currency, Balance: cents(d.between(a.least, a.most)),
			Number: fmt.Sprintf("VB%02d DEMO 0000 %04d %04d", 10+i, d.between(0, 9999), d.between(0, 9999)),
		})
	}
	c.accounts[0].history = spending(d, number, now)
	c.accounts[1].history = []transaction{{ID: number + "-s1", At: now.AddDate(0, 0, -12), Description: "Monthly saving", Category: "Transfer", Amount: 10_000_000, Currency: currency}}
	c.cards = []card{
		{ID: "debit", Name: "Everyday card", Number: fmt.Sprintf("•••• %04d", d.between(0, 9999)), Expires: fmt.Sprintf("%02d/%02d", d.between(1, 12), now.Year()%100+3), Status: "active"},
		{ID: "travel", Name: "Travel card", Number: fmt.Sprintf("•••• %04d", d.between(0, 9999)), Expires: fmt.Sprintf("%02d/%02d", d.between(1, 12), now.Year()%100+2), Status: "frozen"},
	}
	return c
}

// spending makes four weeks of everyday life, newest first.
func spending(d *dice, number string, now time.Time) []transaction {
	var out []transaction
	at := now
	for i := range 18 {
		at = at.Add(-time.Duration(d.between(9, 42)) * time.Hour)
		m := merchants[d.between(0, int64(len(merchants)-1))]
		t := transaction{ID: fmt.Sprintf("%s-%d", number, i+1), At: at, Description: m.name, Category: m.category, Amount: cents(-d.between(m.least, m.most) * tengePerEuro), Currency: currency}
		if i == 6 {
			t.Description, t.Category, t.Amount = "Salary", "Income", cents(d.between(45_000_000, 90_000_000))
		}
		out = append(out, t)
	}
	return out
}
