"""Programs of Debian's that people run in guests, for lab/names: each with the packages that it needs, and work for it.

Programs of a known split run the function often() three times as long as seldom()."""

from dataclasses import dataclass, field

KNOWN = 75  # percent in often(), of both

_C = """
static __attribute__((noinline)) unsigned long {name}(unsigned long n)
{{
	for (int i = 0; i < {count}; i++)
		n = n * 6364136223846793005UL + 1442695040888963407UL;
	return n;
}}
"""
KNOWN_C = (_C.format(name="often", count=30000) + _C.format(name="seldom", count=10000) + """
int main(void)
{
	unsigned long n = 0;

	for (int i = 0; i < 30000; i++)
		n = seldom(often(n));
	return n == 0;
}
""")
_GO = """
//go:noinline
func {name}(n uint64) uint64 {{
	for i := 0; i < {count}; i++ {{
		n = n*6364136223846793005 + 1442695040888963407
	}}
	return n
}}
"""
KNOWN_GO = "package main\n\nimport \"os\"\n" + _GO.format(name="often", count=30000) + _GO.format(name="seldom", count=10000) + """
func main() {
	var n uint64
	for i := 0; i < 30000; i++ {
		n = seldom(often(n))
	}
	if n == 0 {
		os.Exit(1)
	}
}
"""
# Too large to be inlined, and nothing that the compiler simplifies. A loop without a safepoint would count as the method after it.
_JAVA_STEPS = " ".join(["n = (n ^ n >>> 7) * 6364136223846793005L + 1442695040888963407L;"] * 40)
_JAVA = "    static long {name}(long until, long n) {{ while (System.nanoTime() < until) for (int i = 0; i < 20; i++) {{ {steps} }} return n; }}\n"
KNOWN_JAVA = ("public class Known {\n" + _JAVA.format(name="often", steps=_JAVA_STEPS) + _JAVA.format(name="seldom", steps=_JAVA_STEPS) +
              """    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1000000000L, n = 1;
        while (System.nanoTime() < end) {
            n = often(System.nanoTime() + 12000000, n);
            n = seldom(System.nanoTime() + 4000000, n);
        }
        System.out.println("done " + (n == 0 ? 1 : 0));
        Thread.sleep(1500);
    }
}
""")
_JS_STEPS = " ".join(["x = (x * 31 + 7) & 65535;"] * 60)
_JS = "function {name}(until, x) {{ while (Date.now() < until) for (let i = 0; i < 200; i++) {{ {steps} }} return x; }}\n"
KNOWN_JS = (_JS.format(name="often", steps=_JS_STEPS) + _JS.format(name="seldom", steps=_JS_STEPS) + """
function main() {
    const end = Date.now() + 1000 * process.argv[2];
    let x = 1;
    while (Date.now() < end) {
        x = often(Date.now() + 9, x);
        x = seldom(Date.now() + 3, x);
    }
}
main();
setTimeout(() => {}, 1500);
""")
KNOWN_PY = """import sys, time
def often(n):
    for i in range(3000):
        n = (n * 31 + 7) & 65535
    return n
def seldom(n):
    for i in range(1000):
        n = (n * 31 + 7) & 65535
    return n
def main():
    end, n = time.monotonic() + float(sys.argv[1]), 1
    while time.monotonic() < end:
        n = seldom(often(n))
main()
time.sleep(1.5)
"""
_PHP = "function {name}($n) {{ for ($i = 0; $i < {count}; $i++) $n = ($n * 31 + 7) & 65535; return $n; }}\n"
KNOWN_PHP = "<?php\n" + _PHP.format(name="often", count=3000) + _PHP.format(name="seldom", count=1000) + """
$end = microtime(true) + (float)$argv[1];
$n = 1;
while (microtime(true) < $end)
    $n = seldom(often($n));
"""
_RUBY = "def {name}(n)\n  i = 0\n  while i < {count}\n    n = (n * 31 + 7) & 65535\n    i += 1\n  end\n  n\nend\n"
KNOWN_RUBY = _RUBY.format(name="often", count=3000) + _RUBY.format(name="seldom", count=1000) + """
def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
stop = now + ARGV[0].to_f
n = 1
n = seldom(often(n)) while now < stop
"""
_LUA = "local function {name}(n) for i = 1, {count} do n = (n * 31 + 7) % 65536 end return n end\n"
KNOWN_LUA = _LUA.format(name="often", count=3000) + _LUA.format(name="seldom", count=1000) + """
local stop, n = os.clock() + tonumber(arg[1]), 1
while os.clock() < stop do n = seldom(often(n)) end
"""
_PERL = "sub {name} {{ my $n = shift; for my $i (1 .. {count}) {{ $n = ($n * 31 + 7) & 65535; }} return $n; }}\n"
KNOWN_PERL = _PERL.format(name="often", count=3000) + _PERL.format(name="seldom", count=1000) + """
use Time::HiRes qw(time);
my $stop = time + $ARGV[0]; my $n = 1; my %words;
while (time < $stop) { $n = seldom(often($n)); $words{join ",", sort map { $_ * $n % 97 } 1 .. 50}++; }
"""
SQL = ("create table t(a, b); with recursive c(x) as (values(1) union all select x + 1 from c where x < 500000) "
       "insert into t select x, printf('%d', x * 7 % 1000) from c; create index i on t(b); "
       "select count(*), max(a) from t where b like '9%'; select b, sum(a) from t group by b order by 2 limit 3;")
# Variants of a package's name: the part of libcrypto that others load.
POSTGRES = """export PATH=/usr/lib/postgresql/{version}/bin:$PATH
user() {{ setpriv --reuid=999 --regid=999 --clear-groups "$@"; }}
"""
POSTGRES_PREPARE = POSTGRES + """mkdir -p /pg && chown 999:999 /pg
user initdb -D /pg/data -A trust --no-locale -E UTF8 --no-sync -U pg > /tmp/initdb.log
user postgres -D /pg/data -c listen_addresses= -c unix_socket_directories=/pg -c fsync=off -c jit=off > /pg/log 2>&1 &
until user psql -h /pg -U pg -c 'select 1' postgres > /tmp/psql.log 2>&1; do sleep 0.2; done
user pgbench -h /pg -U pg -i -q -s 1 postgres 2>&1 | tail -1
"""
POSTGRES_RUN = POSTGRES + """user pgbench -h /pg -U pg -n -S -T 3 postgres | tail -3
user psql -h /pg -U pg -c 'select count(*), sum(length(md5(i::text))) from generate_series(1, 200000) i' postgres
user psql -h /pg -U pg -c 'select a.bid, count(*), avg(a.abalance + b.aid) from pgbench_accounts a join pgbench_accounts b using (aid) group by 1' postgres
"""
MARIADB_PREPARE = """mkdir -p /my/test
mariadbd --no-defaults --user=root --datadir=/my --socket=/my/socket --skip-grant-tables --skip-networking --innodb-log-file-size=4M --innodb-buffer-pool-size=32M \
    --innodb-use-native-aio=0 > /my/log 2>&1 &
until [ -S /my/socket ]; do sleep 0.2; done
"""
MARIADB_RUN = """mariadb --no-defaults -S /my/socket test -e "create or replace table t (a int primary key, b varchar(20)) engine=innodb;
insert into t select seq, concat('x', seq * 7 % 1000) from seq_1_to_80000; select b, count(*), sum(a) from t group by b order by 3 desc limit 2;
select count(*), sum(crc32(concat(a.seq, b.seq))) from seq_1_to_1000 a, seq_1_to_1000 b;
select count(*), max(x.b) from t x join t y on y.a = x.a % 1000 + 1 where y.b like '%7%'"
"""
REDIS_PREPARE = "{server} --save '' --appendonly no --port 6379 --bind 127.0.0.1 > /tmp/redis.log &\nuntil {cli} ping > /tmp/ping 2>&1; do sleep 0.2; done\n"
REDIS_RUN = "{benchmark} -q -c 5 -P 8 -n 100000 -t set,get,lpush,zadd\n"
NGINX_CONF = """user root;
worker_processes 1;
error_log /tmp/nginx.log;
pid /tmp/nginx.pid;
events {}
http {
    access_log off;
    client_body_temp_path /tmp/body; proxy_temp_path /tmp/proxy; fastcgi_temp_path /tmp/fcgi; uwsgi_temp_path /tmp/uwsgi; scgi_temp_path /tmp/scgi;
    server {
        listen 127.0.0.1:8443 ssl;
        ssl_certificate /tmp/cert.pem;
        ssl_certificate_key /tmp/key.pem;
        location / { root /usr/bin; gzip on; gzip_types *; gzip_comp_level 6; }
    }
}
"""
NGINX_PREPARE = """openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -days 30 -keyout /tmp/key.pem -out /tmp/cert.pem 2> /tmp/req.log
nginx -c /nginx.conf
"""
NGINX_RUN = """i=0
while [ $i -lt 12 ]; do
    (printf 'GET /openssl HTTP/1.1\\r\\nHost: localhost\\r\\nAccept-Encoding: gzip\\r\\nConnection: close\\r\\n\\r\\n'; sleep 0.4) |
        openssl s_client -quiet -connect 127.0.0.1:8443 > /tmp/answer 2> /tmp/s_client.log
    i=$((i + 1))
done
openssl s_time -connect 127.0.0.1:8443 -new -time 4 | tail -2
"""
OPENSSL = 'for what in "-evp aes-256-gcm" sha512 rsa2048 ecdsap256; do openssl speed -elapsed -seconds 1 -bytes 16384 $what; done\n'
SHELL_SCRIPT = "#!/bin/sh\n" + "".join(f'f{i}() {{ for x in "$@"; do [ "$x" = {i} ] && echo $x | grep -q a$i; done; }}\n' for i in range(400))


@dataclass(frozen=True)
class Program:
    """A program. `prepare`: a script that runs before the recordings, and may leave a server in the background. `comms`: names of the
    processes that count. `known`: pattern of the names of often() and seldom(); None: their names are not known."""

    name: str
    packages: tuple[str, ...]
    run: str
    comms: tuple[str, ...]
    prepare: str = ""
    files: dict[str, str] = field(default_factory=dict)
    known: str | None = None
    build: str = ""  # what has to be built on this machine: "go", "java", "packed", "bare"


def _java(version: int, options: str = "", name: str = "java") -> Program:
    return Program(f"{name} {version}", (f"openjdk-{version}-jre-headless",), f"/usr/lib/jvm/java-{version}-openjdk-amd64/bin/java {options}-cp / Known 8\n",
                   ("java",), known=r"Known\.{}", build="java")


def _python(version: str, more: tuple[str, ...] = ()) -> Program:
    return Program(f"python {version}", (f"python{version}-minimal", f"libpython{version}-minimal", *more), f"python{version} -S -E /known.py 7\n",
                   (f"python{version}",), files={"/known.py": KNOWN_PY}, known="py::{}:.*")


def _node(version: int, library: str) -> Program:
    return Program(f"node {version}", ("nodejs", library), "/usr/bin/node /known.js 8\n", ("node", "MainThread"), files={"/known.js": KNOWN_JS},
                   known="JS:{} .*")


def _postgres(version: int) -> Program:
    return Program(f"postgresql {version}", (f"postgresql-{version}", "util-linux"), POSTGRES_RUN.format(version=version), ("postgres",),
                   POSTGRES_PREPARE.format(version=version))


def _php(version: str, extra: tuple[str, ...] = ()) -> Program:
    return Program(f"php {version}, JIT", (f"php{version}-cli", *extra),
                   f"php{version} -n -d zend_extension=opcache.so -d opcache.enable_cli=1 -d opcache.jit=tracing -d opcache.jit_buffer_size=16M /known.php 5\n",
                   (f"php{version}",), files={"/known.php": KNOWN_PHP})


def _ruby(version: str) -> Program:
    return Program(f"ruby {version}, YJIT", (f"ruby{version}",), f"ruby{version} --disable-gems --yjit /known.rb 5\n", (f"ruby{version}",),
                   files={"/known.rb": KNOWN_RUBY})


def _common(python: str) -> tuple[Program, ...]:
    """Those that each suite has."""
    return (Program("openssl", ("openssl",), OPENSSL, ("openssl",)),
            Program("sqlite3", ("sqlite3",), "sqlite3 :memory: < /burn.sql\n", ("sqlite3",), files={"/burn.sql": SQL}),
            Program("gzip", ("gzip", "openssl"), "cat /usr/lib/x86_64-linux-gnu/libcrypto.so.3 | gzip -9 > /dev/null\n", ("gzip",)),
            _python(python),
            Program("perl", ("perl",), "perl /known.pl 5\n", ("perl",), files={"/known.pl": KNOWN_PERL}),
            Program("luajit", ("luajit",), "luajit /known.lua 5\n", ("luajit",), files={"/known.lua": KNOWN_LUA}),
            Program("nginx and openssl", ("nginx", "openssl"), NGINX_RUN, ("nginx", "openssl"), NGINX_PREPARE, {"/nginx.conf": NGINX_CONF}))


def _redis(name: str, tools: str) -> Program:
    return Program(name, (f"{name}-server", f"{name}-tools"), REDIS_RUN.format(benchmark=f"{tools}-benchmark"), (f"{name}-server",),
                   REDIS_PREPARE.format(server=f"{name}-server", cli=f"{tools}-cli"))


RIPGREP = Program("ripgrep (Rust)", ("ripgrep",), "for i in $(seq 20); do rg -j1 -a -c '[a-f]{3}.*[0-9]x[0-9a-f]{2}' /usr/bin /usr/lib | tail -1; done\n", ("rg",))
SHELLCHECK = Program("shellcheck (Haskell)", ("shellcheck",), "shellcheck -s sh /script | tail -1\n", ("shellcheck",), files={"/script": SHELL_SCRIPT})
UNISON = Program("unison (OCaml)", ("unison-2.52",), "HOME=/tmp unison-2.52 -batch -ui text /usr /tmp/b | tail -1; rm -rf /tmp/b /tmp/.unison\n", ("unison-2.52",))
MARIADB = Program("mariadb", ("mariadb-server-core", "mariadb-client-core", "mariadb-common"), MARIADB_RUN, ("mariadbd", "one_connection"), MARIADB_PREPARE)  # 11.7 and newer name their threads
PACKED = Program("symbols as in Fedora", (), "/known-packed\n", ("known-packed",), known="{}", build="packed")
BARE = Program("no symbols", (), "/known-bare\n", ("known-bare",), build="bare")


def _go(version: str) -> Program:
    return Program(f"Go {version}, stripped", (), f"/known-go-{version}\n", (f"known-go-{version}",), known=r"main\.{}", build="go")


# A lab run each: the suite, and its programs.
RUNS: dict[str, tuple[str, tuple[Program, ...]]] = {
    "bookworm": ("bookworm", (*_common("3.11"), _go("1.19"), PACKED, BARE, RIPGREP, UNISON, SHELLCHECK, _redis("redis", "redis"), _postgres(15), MARIADB)),
    "bookworm-jit": ("bookworm", (_java(17), _java(17, "-Xint ", "java -Xint"), _node(18, "libnode108"), _php("8.2", ("php8.2-opcache",)), _ruby("3.1"))),
    "trixie": ("trixie", (*_common("3.13"), _go("1.24"), RIPGREP, SHELLCHECK, _redis("valkey", "valkey"), _postgres(17), MARIADB)),
    "trixie-jit": ("trixie", (_java(21), _java(21, "-Xint ", "java -Xint"), _java(25), _node(20, "libnode115"), _php("8.4", ("php8.4-opcache",)), _ruby("3.3"))),
    "sid": ("sid", (*_common("3.14"), _python("3.13"), RIPGREP, SHELLCHECK, _redis("redis", "redis"), _postgres(18), MARIADB)),
    "sid-jit": ("sid", (_java(8), _java(8, "-Xint ", "java -Xint"), _java(11), _java(26), _node(24, "libnode137")))}
