package password

import (
	"encoding/binary"
	"hash"
	"math/bits"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/blake2b"
)

// Argon2d (RFC 9106), for hashes made elsewhere: golang.org/x/crypto has only
// the other two variants. Nothing is hashed anew with it. It works on one
// processor, whatever the number of lanes.

// Sizes of RFC 9106 section 3.
const (
	blockWords = 128 // of 64 bits: 1 KiB
	slices     = 4
)

type block [blockWords]uint64

// argon2d takes what argon2.IDKey takes.
func argon2d(password, salt []byte, passes, memory uint32, lanes uint8, n uint32) []byte {
	p := uint32(lanes)
	return fill(initialHash(password, salt, nil, nil, passes, memory, p, n), passes, memory, p, n)
}

// fill computes the tag that follows from an initial hash (section 3.2).
func fill(h0 []byte, passes, memory, p, n uint32) []byte {
	segment := memory / (slices * p)
	columns := segment * slices
	blocks := make([]block, columns*p)
	for lane := range p {
		for column := range uint32(2) {
			seed := binary.LittleEndian.AppendUint32(append([]byte{}, h0...), column)
			blocks[lane*columns+column].read(longHash(binary.LittleEndian.AppendUint32(seed, lane), 1024))
		}
	}
	for pass := range passes {
		for slice := range uint32(slices) {
			for lane := range p {
				fillSegment(blocks, pass, slice, lane, p, segment)
			}
		}
	}
	last := blocks[columns-1]
	for lane := uint32(1); lane < p; lane++ {
		last.xor(&blocks[(lane+1)*columns-1])
	}
	return longHash(last.bytes(), n)
}

func initialHash(password, salt, key, data []byte, passes, memory, lanes, n uint32) []byte {
	h, _ := blake2b.New512(nil) // fails for long keys alone
	for _, v := range []uint32{lanes, n, memory, passes, argon2.Version, 0} {
		writeUint32(h, v)
	}
	for _, field := range [][]byte{password, salt, key, data} {
		writeUint32(h, uint32(len(field))) //nolint:gosec // passwords and salts are short
		h.Write(field)
	}
	return h.Sum(nil)
}

func writeUint32(h hash.Hash, v uint32) { h.Write(binary.LittleEndian.AppendUint32(nil, v)) }

// longHash is H' of section 3.3.
func longHash(in []byte, n uint32) []byte {
	seed := append(binary.LittleEndian.AppendUint32(nil, n), in...)
	if n <= blake2b.Size {
		h, _ := blake2b.New(int(n), nil) // 1 to 64
		h.Write(seed)
		return h.Sum(nil)
	}
	v := blake2b.Sum512(seed)
	out := append(make([]byte, 0, n), v[:32]...)
	for n-uint32(len(out)) > blake2b.Size { //nolint:gosec // at most n
		v = blake2b.Sum512(v[:])
		out = append(out, v[:32]...)
	}
	h, _ := blake2b.New(int(n)-len(out), nil) // 33 to 64
	h.Write(v[:])
	return h.Sum(out)
}

// fillSegment computes a quarter of a lane (sections 3.1.2 and 3.4).
func fillSegment(blocks []block, pass, slice, lane, lanes, segment uint32) {
	columns := segment * slices
	index := uint32(0)
	if pass == 0 && slice == 0 {
		index = 2
	}
	for ; index < segment; index++ {
		column := slice*segment + index
		previous := &blocks[lane*columns+(column+columns-1)%columns]
		random := previous[0]
		from := uint32(random>>32) % lanes
		if pass == 0 && slice == 0 {
			from = lane
		}
		reference := &blocks[from*columns+referenceColumn(uint32(random), pass, slice, index, segment, from == lane)] //nolint:gosec // the low half
		compress(&blocks[lane*columns+column], previous, reference, pass > 0)
	}
}

// referenceColumn maps J1 to a block of the reference area (section 3.4.2).
func referenceColumn(j1, pass, slice, index, segment uint32, sameLane bool) uint32 {
	columns := segment * slices
	area, start := slice*segment, uint32(0)
	if pass > 0 {
		area, start = columns-segment, (slice+1)*segment%columns
	}
	switch {
	case sameLane:
		area += index - 1
	case index == 0:
		area--
	}
	x := uint64(j1) * uint64(j1) >> 32
	z := area - 1 - uint32(uint64(area)*x>>32) //nolint:gosec // below area
	return (start + z) % columns
}

// compress is G (section 3.5); again adds to what the block held (version 1.3).
func compress(out, x, y *block, again bool) {
	var r block
	for i := range r {
		r[i] = x[i] ^ y[i]
	}
	z := r
	for i := 0; i < blockWords; i += 16 {
		permute(&z, i, i+1, i+2, i+3, i+4, i+5, i+6, i+7, i+8, i+9, i+10, i+11, i+12, i+13, i+14, i+15)
	}
	for i := 0; i < 16; i += 2 {
		permute(&z, i, i+1, i+16, i+17, i+32, i+33, i+48, i+49, i+64, i+65, i+80, i+81, i+96, i+97, i+112, i+113)
	}
	z.xor(&r)
	if again {
		z.xor(out)
	}
	*out = z
}

// permute is P (section 3.6) on sixteen words of a block.
func permute(b *block, i0, i1, i2, i3, i4, i5, i6, i7, i8, i9, i10, i11, i12, i13, i14, i15 int) {
	mix(b, i0, i4, i8, i12)
	mix(b, i1, i5, i9, i13)
	mix(b, i2, i6, i10, i14)
	mix(b, i3, i7, i11, i15)
	mix(b, i0, i5, i10, i15)
	mix(b, i1, i6, i11, i12)
	mix(b, i2, i7, i8, i13)
	mix(b, i3, i4, i9, i14)
}

// mix is GB (section 3.6).
func mix(v *block, ia, ib, ic, id int) {
	a, b, c, d := v[ia], v[ib], v[ic], v[id]
	a = multiplyAdd(a, b)
	d = bits.RotateLeft64(d^a, -32)
	c = multiplyAdd(c, d)
	b = bits.RotateLeft64(b^c, -24)
	a = multiplyAdd(a, b)
	d = bits.RotateLeft64(d^a, -16)
	c = multiplyAdd(c, d)
	b = bits.RotateLeft64(b^c, -63)
	v[ia], v[ib], v[ic], v[id] = a, b, c, d
}

func multiplyAdd(a, b uint64) uint64 { return a + b + 2*uint64(uint32(a))*uint64(uint32(b)) } //nolint:gosec // the low halves

func (b *block) xor(other *block) {
	for i := range b {
		b[i] ^= other[i]
	}
}

func (b *block) read(raw []byte) {
	for i := range b {
		b[i] = binary.LittleEndian.Uint64(raw[8*i:])
	}
}

func (b *block) bytes() []byte {
	out := make([]byte, 0, 8*blockWords)
	for _, w := range b {
		out = binary.LittleEndian.AppendUint64(out, w)
	}
	return out
}
