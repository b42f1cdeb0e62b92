/*
 * shor N X [--repeat R] [--seconds S] [--threads N]
 *
 * Shor's algorithm on a simulated quantum computer (libquantum): looks for a factor of N with the
 * base X. One run applies modular exponentiation, which spends its time in quantum_toffoli(),
 * quantum_cnot() and quantum_sigma_x(), and a quantum Fourier transform. Seeded, so repeatable.
 * Debian builds libquantum with OpenMP, so the loops are in symbols like quantum_toffoli._omp_fn.0;
 * its shared library has no names for those, so this program takes the static one.
 */
#include "common.h"

#include <omp.h>
#include <quantum.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One run; returns a factor of n, or 0 when this measurement gives none. */
static int shor_run(int n, int x)
{
	int width = quantum_getwidth(n * n);  /* of the input register */
	int work_width = quantum_getwidth(n); /* of the result */
	quantum_reg reg = quantum_new_qureg(0, width);
	long long measured;
	int c, q, factor;

	for (int i = 0; i < width; i++)
		quantum_hadamard(i, &reg);
	quantum_addscratch(3 * work_width + 2, &reg);
	quantum_exp_mod_n(n, x, width, work_width, &reg);
	for (int i = 0; i < 3 * work_width + 2; i++)
		quantum_bmeasure(0, &reg);
	quantum_qft(width, &reg);
	for (int i = 0; i < width / 2; i++) {
		quantum_cnot(i, width - i - 1, &reg);
		quantum_cnot(width - i - 1, i, &reg);
		quantum_cnot(i, width - i - 1, &reg);
	}
	measured = (long long)quantum_measure(reg);
	quantum_delete_qureg(&reg);
	if (measured <= 0)
		return 0;
	c = (int)measured;
	q = 1 << width;
	quantum_frac_approx(&c, &q, width);
	if (q % 2 == 1 && 2 * q < (1 << width))
		q *= 2;
	if (q % 2)
		return 0;
	/* x^(q/2) mod n, small enough to stay in an int for the n that fit in memory. */
	long long power = 1;
	for (int i = 0; i < q / 2; i++)
		power = power * x % n;
	factor = quantum_gcd(n, (int)(power + 1));
	if (factor <= 1 || factor >= n)
		factor = quantum_gcd(n, (int)(power + n - 1) % n);
	return factor > 1 && factor < n ? factor : 0;
}

int main(int argc, char **argv)
{
	uint64_t repeat = 1, runs = 0;
	double seconds = 0;
	int threads = 1;
	int n, x;

	work_init_abrupt("shor");
	if (argc < 3)
		work_usage("expected N X [--repeat R] [--seconds S] [--threads N]");
	n = (int)work_number("N", argv[1]);
	x = (int)work_number("X", argv[2]);
	if (n < 15 || n > 4095 || x < 2 || quantum_gcd(n, x) > 1)
		work_usage("N must be from 15 to 4095, and X at least 2 and prime to N");
	for (int i = 3; i < argc; i += 2) {
		if (!strcmp(argv[i], "--repeat"))
			repeat = (uint64_t)work_number(argv[i], argv[i + 1]);
		else if (!strcmp(argv[i], "--seconds"))
			seconds = work_number(argv[i], argv[i + 1]);
		else if (!strcmp(argv[i], "--threads"))
			threads = (int)work_number(argv[i], argv[i + 1]);
		else
			work_usage("unknown option '%s': expected --repeat, --seconds or --threads",
				   argv[i]);
	}
	work_limit(seconds);
	omp_set_num_threads(threads > 0 ? threads : 1);
	srand(1);
	do {
		int factor = shor_run(n, x);

		runs++;
		if (factor)
			printf("shor: run %llu: %d = %d * %d\n", (unsigned long long)runs, n,
			       factor, n / factor);
		else
			printf("shor: run %llu: no factor\n", (unsigned long long)runs);
	} while (!work_over() && (seconds > 0 || runs < repeat));
	work_summary();
	return 0;
}
