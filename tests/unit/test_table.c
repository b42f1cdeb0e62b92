/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "render/decimal.h"
#include "table/date.h"
#include "table/reader_private.h"

static struct vp_error *read_text(const char *text, struct vp_data *data)
{
	FILE *file = fmemopen((void *)text, strlen(text), "r");
	struct vp_error *error = vp_dataset_read_stream(file, "f", data);

	fclose(file);
	return error;
}

static void assert_refused(const char *text, const char *sentence)
{
	struct vp_data data;
	struct vp_error *error = read_text(text, &data);

	assert_non_null(error);
	assert_string_equal(vp_error_message(error), sentence);
	vp_error_free(error);
}

static double value(const struct vp_data *data, size_t column, size_t row)
{
	return data->columns.at[column].values[row];
}

static void test_arff(void **state)
{
	static const char text[] = "% a comment\n@RELATION 'my data' % more\n"
				   "@attribute\ta Real\n@attribute 'b c' {x, 'y z', \"q\\'s\"}\n"
				   "@Attribute d INTEGER\n\n@DATA\n"
				   "1,x,3 % behind\r\n-2e1 'y z' ?\n\n?, \"q's\", 7\n";
	struct vp_data data;

	assert_null(read_text(text, &data));
	assert_string_equal(data.name, "my data");
	assert_int_equal(data.columns.count, 3);
	assert_int_equal(data.rows, 3);
	assert_int_equal(data.target, 2);
	assert_string_equal(data.columns.at[1].name, "b c");
	assert_string_equal(data.columns.at[1].labels.at[2], "q's");
	assert_true(value(&data, 0, 1) == -20 && value(&data, 1, 1) == 1);
	assert_true(isnan(value(&data, 2, 1)) && isnan(value(&data, 0, 2)));
	assert_true(value(&data, 1, 2) == 2 && value(&data, 2, 2) == 7);
	vp_data_deinit(&data);
}

#define HEAD "@relation r\n@attribute a numeric\n@attribute b {x,y}\n@data\n"

static void test_arff_refuses(void **state)
{
	assert_refused(HEAD, "f:4: expected rows of data, found none");
	assert_refused(HEAD "1\n",
		       "f:5: column 2 ('b'): expected a value, found the end of the row "
		       "(1 of 2 values)");
	assert_refused(HEAD "1,x,2\n", "f:5: column 3: expected 2 values, found more");
	assert_refused(
	    HEAD " {0 1}\n",
	    "f:5:2: expected a value for each attribute (sparse rows are not supported)");
	assert_refused(HEAD "1,x,{2}\n",
		       "f:5:5: expected the end of the row (weights are not supported)");
	assert_refused(HEAD "1,}\n", "f:5:3: expected a value, not '{' or '}'");
	assert_refused(HEAD "1,z\n", "f:5: column 2 ('b'): expected one of its labels, not 'z'");
	assert_refused(HEAD "NaN,x\n", "f:5: column 1 ('a'): expected a finite number, not 'NaN'");
	assert_refused(HEAD "1e999,x\n",
		       "f:5: column 1 ('a'): expected a finite number, not '1e999'");
	assert_refused(HEAD "1,'x\n", "f:5:3: expected closing '");
	assert_refused("@relation r\n@attribute a string\n@data\n",
		       "f:2:14: attribute 'a' is of type 'string', which is not supported: "
		       "expected numeric, real, integer, date or {labels}");
	assert_refused("@relation r\n@attribute a relational\n@end a\n@data\n",
		       "f:2:14: attribute 'a' is of type 'relational', which is not supported: "
		       "expected numeric, real, integer, date or {labels}");
	assert_refused("@relation r\n@attribute a number\n@data\n",
		       "f:2:14: attribute 'a' is of type 'number': expected numeric, real, "
		       "integer, date or {labels}");
	assert_refused("@relation r\n@attribute a numeric\n",
		       "f:2: expected a line @data, found the end");
	assert_refused("@relation r\n@attribute a {x,x}\n@data\n", "f:2:17: duplicate label 'x'");
	assert_refused("@relation r\n@data\n1\n", "f:2:1: expected an @attribute before @data");
}

/* When it is in the world of dates; the tests' time zone is UTC. */
static void assert_date(const char *format, const char *text, double expected)
{
	double ms = NAN;

	assert_int_equal(vp_date_format_unknown(format), 0);
	assert_true(vp_date_parse(format, text, &ms));
	assert_true(ms == expected);
}

/* What Java's SimpleDateFormat says of them. */
static void test_dates(void **state)
{
	assert_date(VP_DATE_USUAL, "2004-02-29T23:59:58", 1078099198000);
	assert_date("yyyy-MM-dd", "2001-1-5", 978652800000);
	assert_date("yyyy-MM-dd", "01-1-5", -62135424000000);
	assert_date("yyyy-MM-dd", "1500-01-05", -14830646400000);
	assert_date("yyyy-MM-dd", " 2001-01-05 and more", 978652800000);
	assert_date("yy-MM-dd", "01-1-5", 978652800000);
	assert_date("yy-MM-dd", "77-01-01", 220924800000);
	assert_date("M/d/yy", "1/2/2001", 978393600000);
	assert_date("yyyyMMdd", "20010203", 981158400000);
	assert_date("dd MMM yyyy", "3 jan 2001", 978480000000);
	assert_date("dd MMMM yyyy", "3 January 2001", 978480000000);
	assert_date("E dd.MM.yyyy", "Wednesday 03.01.2001", 978480000000);
	assert_date("hh:mm a", "11:05 PM", 83100000);
	assert_date("hh:mm a", "12:30 PM", 45000000);
	assert_date("hh:mm a", "12:30 AM", 1800000);
	assert_date("yyyy-MM-dd", "1582-10-04", -12219379200000);
	assert_date("yyyy-MM-dd", "1582-10-15", -12219292800000);
	assert_date("k 'o''clock'", "24 o'clock", 0);
	assert_date("mm:ss.SSS", "10:20.5", 620005);
	assert_date("yyyy-MM-dd HH:mm:ss Z", "2001-01-01 00:00:00 +0200", 978300000000);
	assert_date("yyyy", "12", -61788700800000);
}

static void test_dates_refuse(void **state)
{
	static const char *const texts[][2] = {
	    {"yyyy-MM-dd", "2001-02-30"},
	    {"yyyy-MM-dd", "-5-01-05"},
	    {"yyyy-MM-dd", "2001-13-01"},
	    {"yyyy-MM-dd", "2001-01"},
	    {"HH:mm", "25:00"},
	    {"yyyy-MM-dd", "1582-10-10"},
	    {"E yyyy-MM-dd", "Mon 2001-01-03"},
	    {"yyyyMMdd", "2001020"},
	    {"hh a", "10 XM"},
	    {"Z", "+02"},
	    {"dd MMM", "3 Jun."},
	    {"'T'H", "t1"},
	    {"yyyy-MM-dd", "2001-04-31"},
	    {"yyyy-MM-dd", "2100-02-29"},
	};
	double ms;

	for (size_t i = 0; i < VP_ARRAY_SIZE(texts); i++)
		assert_int_equal(vp_date_parse(texts[i][0], texts[i][1], &ms), i == 10);
	assert_int_equal(vp_date_format_unknown("yyyy-ww"), 'w');
	assert_int_equal(vp_date_format_unknown("yyyy 'T"), '\'');
}

static void test_arff_dates(void **state)
{
	static const char text[] = "@relation r\n@attribute a date\n@attribute b DATE 'd M yyyy'\n"
				   "@data\n1970-01-01T00:00:01,'2 1 1970'\n?,\"1 1 1970\"\n";
	struct vp_data data;

	assert_null(read_text(text, &data));
	assert_int_equal(data.columns.at[1].type, VP_DATA_NUMERIC);
	assert_true(value(&data, 0, 0) == 1000 && isnan(value(&data, 0, 1)));
	assert_true(value(&data, 1, 0) == 86400000 && value(&data, 1, 1) == 0);
	vp_data_deinit(&data);
	assert_refused("@attribute a date\n@data\n1970-01-01\n",
		       "f:3: column 1 ('a'): expected a date as yyyy-MM-dd'T'HH:mm:ss, not "
		       "'1970-01-01'");
	assert_refused("@attribute a date yyyy-ww\n@data\n1970-01\n",
		       "f:1:19: attribute 'a': its date format has 'w', which is not one of "
		       "yMdHkKhmsSaEZ");
}

static void test_csv(void **state)
{
	static const char text[] = "\xef\xbb\xbf"
				   "name,\"a \"\"b\"\"\",c\r\n"
				   "\"two\r\nlines\",1,NA\r\n,\"2\",?\r\nweb, 3 ,4.5\r\n\r\n";
	struct vp_data data;

	assert_null(read_text(text, &data));
	assert_int_equal(data.rows, 3);
	assert_string_equal(data.columns.at[0].name, "name");
	assert_string_equal(data.columns.at[1].name, "a \"b\"");
	assert_int_equal(data.columns.at[0].type, VP_DATA_NOMINAL);
	assert_string_equal(data.columns.at[0].labels.at[0], "two\nlines");
	assert_true(isnan(value(&data, 0, 1)) && value(&data, 0, 2) == 1);
	assert_int_equal(data.columns.at[1].type, VP_DATA_NUMERIC);
	assert_true(value(&data, 1, 1) == 2 && value(&data, 1, 2) == 3);
	assert_true(isnan(value(&data, 2, 0)) && value(&data, 2, 2) == 4.5);
	vp_data_deinit(&data);
}

static void test_csv_separators(void **state)
{
	static const char *const texts[] = {"a;b\n1;2\n", "a\tb\n1\t2\n", " a   b\n  1\t 2  \n"};

	for (size_t i = 0; i < VP_ARRAY_SIZE(texts); i++) {
		struct vp_data data;
		assert_null(read_text(texts[i], &data));
		assert_int_equal(data.columns.count, 2);
		assert_true(value(&data, 0, 0) == 1 && value(&data, 1, 0) == 2);
		vp_data_deinit(&data);
	}
}

/* A word in quotes is one, whatever it looks like; separators in quotes are none. */
static void test_csv_quotes(void **state)
{
	struct vp_data data;

	assert_null(read_text("\"a,b\";c\n\"NA\";1,5\n\"?\";2\nNA;?\n", &data));
	assert_int_equal(data.columns.count, 2);
	assert_string_equal(data.columns.at[0].name, "a,b");
	assert_int_equal(data.columns.at[0].labels.count, 2);
	assert_string_equal(data.columns.at[0].labels.at[0], "NA");
	assert_string_equal(data.columns.at[0].labels.at[1], "?");
	assert_int_equal(data.columns.at[0].line, 2);
	assert_true(isnan(value(&data, 0, 2)));
	assert_int_equal(data.columns.at[1].type, VP_DATA_NUMERIC);
	assert_true(value(&data, 1, 0) == 1.5 && value(&data, 1, 1) == 2);
	assert_true(isnan(value(&data, 1, 2)));
	vp_data_deinit(&data);
	/* Between commas, none is a number's. */
	assert_null(read_text("a,b\n\"1,5\",2\n", &data));
	assert_int_equal(data.columns.at[0].type, VP_DATA_NOMINAL);
	vp_data_deinit(&data);
}

/* What is written is read again: names and labels with quotes, every digit, and what is missing. */
static void test_csv_round_trip(void **state)
{
	static const char text[] =
	    "\"a \"\"b\"\", c\",d\n\"x\"\"y\",0.1234567890123\n,?\n\"z\",3\n";
	struct vp_data data, again;
	struct vp_buffer out = {0};

	assert_null(read_text(text, &data));
	vp_dataset_write_csv(&data, &out);
	assert_null(read_text(vp_buffer_text(&out), &again));
	assert_int_equal(again.rows, 3);
	assert_string_equal(again.columns.at[0].name, "a \"b\", c");
	assert_string_equal(again.columns.at[0].labels.at[0], "x\"y");
	assert_true(isnan(value(&again, 0, 1)) && isnan(value(&again, 1, 1)));
	assert_true(value(&again, 1, 0) == 0.1234567890123 && value(&again, 1, 2) == 3);
	vp_buffer_deinit(&out);
	vp_data_deinit(&data);
	vp_data_deinit(&again);
}

/* Every number is the nearest double, as strtod() has it. */
static void test_numbers(void **state)
{
	static const char *const texts[] = {"0",
					    "-0",
					    "+7.25",
					    ".5",
					    "5.",
					    "1e22",
					    "1E-22",
					    "9007199254740993",
					    "0.1e-30",
					    "123456789012345678901234567890",
					    "18446744073709551617",
					    "0.000000000000000000000000000001",
					    "2.2250738585072011e-308",
					    "4.9e-324",
					    "1.7976931348623157e308",
					    "1e-400",
					    "0e99999999999",
					    "8.5443e-05",
					    "3.14159265358979323846"};
	static const char *const words[] = {"",   "-",     "e5",  "1e",  "1e+", "0x10",  "1 ",
					    " 1", "1.2.3", "1,5", "nan", "inf", "1e400", "--1"};
	double number, sum = 0;

	for (size_t i = 0; i < VP_ARRAY_SIZE(texts); i++) {
		double expected = strtod(texts[i], NULL);
		assert_true(vp_dataset_number(texts[i], '.', &number));
		assert_memory_equal(&number, &expected, sizeof(number));
	}
	for (size_t i = 0; i < VP_ARRAY_SIZE(words); i++)
		assert_false(vp_dataset_number(words[i], '.', &number));
	srand48(1);
	for (int i = 0; i < 100000; i++) {
		char text[40];
		snprintf(text, sizeof(text), "%.*g", 1 + i % 18, ldexp(drand48(), i % 90 - 60));
		double expected = strtod(text, NULL);
		assert_true(vp_dataset_number(text, '.', &number));
		sum += number == expected;
	}
	assert_true(sum == 100000);
}

static void test_decimal_comma(void **state)
{
	struct vp_data data;

	assert_null(read_text("a;b\n1,5;2\n-0,25;2.5e1\n", &data));
	assert_int_equal(data.columns.at[0].type, VP_DATA_NUMERIC);
	assert_true(value(&data, 0, 0) == 1.5 && value(&data, 0, 1) == -0.25);
	assert_true(value(&data, 1, 1) == 25);
	vp_data_deinit(&data);
}

static void test_csv_refuses(void **state)
{
	assert_refused("", "f: expected a line of column names, found nothing");
	assert_refused("a,b\n", "f:1: expected rows of data, found none");
	assert_refused(
	    "a,b\n1\n",
	    "f:2: column 2 ('b'): expected a value, found the end of the row (1 of 2 values)");
	assert_refused("1,2\n3,4\n", "f:1: column 1: expected a name, not '1'");
	assert_refused("a,b\n1,inf\n", "f:2: column 2 ('b'): expected a finite number, not 'inf'");
	assert_refused("a,b\n1,\"2\n", "f:2: expected closing \"");
	assert_refused("a,b\n1,\"2\"3\n", "f:2: expected a separator after a quoted field");
}

static void assert_decimal(double number, int digits, const char *expected)
{
	struct vp_buffer out = {0};

	vp_render_decimal(number, digits, &out);
	assert_string_equal(vp_buffer_text(&out), expected);
	vp_buffer_deinit(&out);
}

static void test_decimals(void **state)
{
	assert_decimal(1.25, 4, "1.25");
	assert_decimal(-0.00005, 4, "-0.0001");
	assert_decimal(0.00004, 4, "0");
	assert_decimal(-0.00004, 4, "0");
	assert_decimal(7, 3, "7");
	assert_decimal(-1234.56789, 4, "-1234.5679");
	assert_decimal(1e18, 4, "1.0E18");
	assert_decimal(-1.5e300, 4, "-1.5E300");
	assert_decimal(NAN, 4, "NaN");
	assert_decimal(-0.4, 0, "0");
	assert_decimal(-0.5, 0, "-1");
	assert_decimal(41.5, 0, "42");
}

static void assert_field(double number, int width, int digits, const char *expected)
{
	struct vp_buffer out = {0};

	vp_render_decimal_field(number, width, digits, &out);
	assert_string_equal(vp_buffer_text(&out), expected);
	vp_buffer_deinit(&out);
}

/* The points of a column are below each other, as in WEKA's Utils.doubleToString(); what has no
 * room is as wide as it is. */
static void test_decimal_fields(void **state)
{
	assert_field(1.25, 12, 4, "      1.25  ");
	assert_field(-31, 12, 4, "    -31     ");
	assert_field(1234567.25, 12, 4, "1234567.25  ");
	assert_field(12345678.25, 12, 4, "12345678.25");
	assert_field(1e18, 12, 4, "1.0E18");
	assert_field(1.25, 4, 4, "1.25");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_arff),         cmocka_unit_test(test_arff_refuses),
	    cmocka_unit_test(test_csv),          cmocka_unit_test(test_csv_separators),
	    cmocka_unit_test(test_csv_refuses),  cmocka_unit_test(test_dates),
	    cmocka_unit_test(test_numbers),      cmocka_unit_test(test_decimal_comma),
	    cmocka_unit_test(test_dates_refuse), cmocka_unit_test(test_arff_dates),
	    cmocka_unit_test(test_decimals),     cmocka_unit_test(test_decimal_fields),
	    cmocka_unit_test(test_csv_quotes),   cmocka_unit_test(test_csv_round_trip),
	};

	setenv("TZ", "UTC", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
