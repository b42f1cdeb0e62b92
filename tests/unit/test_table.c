/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "render/decimal.h"
#include "table/reader.h"

static struct vp_error *read_text(const char *text, struct vp_data *data)
{
	FILE *file = fmemopen((void *)text, strlen(text), "r");
	struct vp_error *error = vp_table_read_stream(file, "f", data);

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
	assert_refused(HEAD "1\n", "f:5: expected 2 values, found 1");
	assert_refused(HEAD "1,x,2\n", "f:5: expected 2 values, found more");
	assert_refused(HEAD "{0 1}\n",
		       "f:5: a sparse row ('{'): expected a value for each attribute");
	assert_refused(HEAD "1,z\n", "f:5: column 2 ('b'): expected one of its labels, not 'z'");
	assert_refused(HEAD "NaN,x\n", "f:5: column 1 ('a'): expected a finite number, not 'NaN'");
	assert_refused(HEAD "1e999,x\n",
		       "f:5: column 1 ('a'): expected a finite number, not '1e999'");
	assert_refused(HEAD "1,'x\n", "f:5: expected ' at the end of a quoted word");
	assert_refused("@relation r\n@attribute a string\n@data\n",
		       "f:2: attribute 'a' is of type 'string': expected numeric, real, integer or "
		       "{labels}");
	assert_refused("@relation r\n@attribute a numeric\n", "f:2: expected a line @data");
	assert_refused("@relation r\n@attribute a {x,x}\n@data\n", "f:2: label 'x' is there twice");
	assert_refused("@relation r\n@data\n1\n", "f:2: expected an @attribute before @data");
}

static void test_csv(void **state)
{
	static const char text[] = "\xef\xbb\xbf"
				   "name,\"a \"\"b\"\"\",c\r\n"
				   "\"two\r\nlines\",1,NA\r\n,\"2\",?\r\nweb, 3 ,4.5\r\n\r\n";
	struct vp_data data;

	assert_null(read_text(text, &data));
	assert_int_equal(data.rows, 3);
	assert_string_equal(data.columns.at[1].name, "a \"b\"");
	assert_int_equal(data.columns.at[0].type, VP_COLUMN_NOMINAL);
	assert_string_equal(data.columns.at[0].labels.at[0], "two\nlines");
	assert_true(isnan(value(&data, 0, 1)) && value(&data, 0, 2) == 1);
	assert_int_equal(data.columns.at[1].type, VP_COLUMN_NUMERIC);
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

static void test_csv_refuses(void **state)
{
	assert_refused("", "f: expected a line of column names, found nothing");
	assert_refused("a,b\n", "f:1: expected rows of data, found none");
	assert_refused("a,b\n1\n", "f:2: expected 2 values, found 1");
	assert_refused("1,2\n3,4\n", "f:1: column 1: expected a name, not '1'");
	assert_refused("a,b\n1,inf\n", "f:2: column 2 ('b'): expected a finite number, not 'inf'");
	assert_refused("a,b\n1,\"2\n", "f:2: expected \" at the end of a quoted field");
	assert_refused("a,b\n1,\"2\"3\n", "f:2: expected a separator behind a quoted field");
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
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_arff),        cmocka_unit_test(test_arff_refuses),
	    cmocka_unit_test(test_csv),         cmocka_unit_test(test_csv_separators),
	    cmocka_unit_test(test_csv_refuses), cmocka_unit_test(test_decimals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
