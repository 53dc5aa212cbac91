package providers_test

import (
	"testing"

	"vmctl/providers"
)

func TestClaimOverlaps(t *testing.T) {
	port := func(key string) providers.Claim { return providers.Claim{Kind: providers.ClaimPort, Key: key} }
	mount := func(key string) providers.Claim { return providers.Claim{Kind: providers.ClaimMount, Key: key} }
	for _, tc := range []struct {
		a, b providers.Claim
		want bool
	}{
		{port("127.0.0.1:80/tcp"), port("127.0.0.1:80/tcp"), true},
		{port("0.0.0.0:80/tcp"), port("127.0.0.1:80/tcp"), true},
		{port("[::]:80/tcp"), port("127.0.0.1:80/tcp"), true},
		{port(":80/tcp"), port("10.0.0.1:80/tcp"), true},
		{port("0.0.0.0:80/tcp"), port("0.0.0.0:80/tcp"), true},
		{port("[::ffff:127.0.0.1]:80/tcp"), port("127.0.0.1:80/tcp"), true},
		{port("[::ffff:127.0.0.2]:80/tcp"), port("127.0.0.1:80/tcp"), false},
		{port("[::1]:80/tcp"), port("[0:0::1]:80/tcp"), true},
		{port("127.0.0.2:80/tcp"), port("127.0.0.1:80/tcp"), false},
		{port("0.0.0.0:80/udp"), port("127.0.0.1:80/tcp"), false},
		{port("0.0.0.0:81/tcp"), port("127.0.0.1:80/tcp"), false},
		{port("nonsense"), port("127.0.0.1:80/tcp"), false},
		{mount("/a/b"), mount("/a/b"), true},
		{mount("/a/b"), mount("/a/b/c/d"), true},
		{mount("/"), mount("/a"), true},
		{mount("/a/b"), mount("/a/bc"), false},
		{mount("/a/b"), mount("/a/c"), false},
		{mount("/a/b"), providers.Claim{Kind: "path", Key: "/a/b"}, false},
		{providers.Claim{Kind: "name", Key: "0.0.0.0:80"}, providers.Claim{Kind: "name", Key: "127.0.0.1:80"}, false},
	} {
		if tc.a.Overlaps(tc.b) != tc.want || tc.b.Overlaps(tc.a) != tc.want {
			t.Errorf("%s and %s overlap: %t, want %t", tc.a, tc.b, !tc.want, tc.want)
		}
		if tc.want && tc.a.Group() != tc.b.Group() {
			t.Errorf("%s and %s overlap, and are of different groups", tc.a, tc.b)
		}
	}
}
