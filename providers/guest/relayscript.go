package guest

// relayScript connects to a socket inside a guest whose SSH server forwards none, and relays it to its own standard input and
// output: $1 is tcp or unix, $2 the host or the path, $3 the port. It writes a line feed first, once it has connected; with nc,
// which says nothing, once there is a socket to connect to. The end of its input is the end of what the socket gets. It ends with
// the socket; nc, if the socket only ends what it sends, once its input has ended, too.
const relayScript = `
if [ "$1" = unix ] && ! [ -S "$2" ]; then
  [ -e "$2" ] && echo "it is no socket" >&2 || echo "there is no such socket" >&2
  exit 1
fi
if command -v python3 >/dev/null 2>&1; then
  exec python3 -c '
import os, socket, sys, threading
try:
    if sys.argv[1] == "unix":
        s = socket.socket(socket.AF_UNIX)
        s.connect(sys.argv[2])
    else:
        s = socket.create_connection((sys.argv[2], int(sys.argv[3])))
except OSError as e:
    sys.exit(str(e))
os.write(1, b"\n")
def up():
    try:
        while True:
            data = os.read(0, 65536)
            if not data:
                break
            s.sendall(data)
        s.shutdown(socket.SHUT_WR)
    except OSError:
        pass
threading.Thread(target=up, daemon=True).start()
try:
    while True:
        data = s.recv(65536)
        if not data:
            break
        while data:
            data = data[os.write(1, data):]
except OSError as e:
    sys.stderr.write(str(e) + "\n")
    sys.stderr.flush()
    os._exit(1)
os._exit(0)
' "$@"
fi
if perl -MIO::Socket::UNIX -MIO::Socket::IP -e 1 >/dev/null 2>&1; then
  exec perl -MIO::Socket::UNIX -MIO::Socket::IP -e '
sub put { my ($to, $data) = @_; while (length $data) { my $n = syswrite($to, $data); defined $n or return 0; substr($data, 0, $n) = ""; } 1 }
$SIG{PIPE} = "IGNORE";
my $s = $ARGV[0] eq "unix" ? IO::Socket::UNIX->new(Peer => $ARGV[1]) : IO::Socket::IP->new(PeerHost => $ARGV[1], PeerPort => $ARGV[2], Type => SOCK_STREAM);
$s or die(($! || $@) . "\n");
put(\*STDOUT, "\n");
defined(my $up = fork) or die "$!\n";
my $data;
if (!$up) {
  while (sysread(STDIN, $data, 65536)) { put($s, $data) or last; }
  shutdown($s, 1);
  exit 0;
}
my $n;
while ($n = sysread($s, $data, 65536)) { put(\*STDOUT, $data) or last; }
my $why = $!;
kill "KILL", $up;
defined $n or die "$why\n";
' "$@"
fi
for nc in nc nc.openbsd; do
  if "$nc" -h 2>&1 | grep -q -- -U; then
    echo
    if [ "$1" = unix ]; then
      exec "$nc" -v -N -U "$2"
    fi
    exec "$nc" -v -N "$2" "$3"
  fi
done
exit 127
`
